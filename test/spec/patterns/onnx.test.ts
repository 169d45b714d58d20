/** Pattern models in ONNX in a real gateway process: their checks, and the Events of their windows through kills. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { writeGraph } from '#inference/onnx/graph-writer.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { writeModel } from '#test/kit/onnx-models.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { at, begin, iso, minute, patience, patternSite, propertyId, streamEntities } from './pattern-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-onnx-patterns-'))
let gateway: GatewayProcess
const client = () => httpClient(gateway.httpUrl)
const { create, observe, events, register } = patternSite(client)
const start = async (): Promise<void> => {
  gateway = await startGatewayProcess({
    dataFolder: join(folder, 'data'),
    env: { SELVEDGE_MQTT_PORT: 'off', SELVEDGE_LIMITS: 'patternSaveMs=300' },
  })
}

/** A Gaussian mixture of scikit-learn, and what skl2onnx made of it: `mixture.py` wrote both. */
const mixture = JSON.parse(readFileSync(join(import.meta.dirname, 'mixture.json'), 'utf8')) as {
  readonly json: object
  readonly onnx: string
}
const labels = ['Together', 'Alone']

/** y = softmax(x), or another operator of as many numbers. */
const graphOf = (operator: string, size = 2) =>
  ({
    nodes: [{ operator, inputs: ['x'], outputs: ['y'] }],
    weights: [],
    inputs: [{ name: 'x', sizes: [size] }],
    outputs: [{ name: 'y', sizes: [size] }],
  }) as const
const fileOf = (operator: string, size?: number): string =>
  Buffer.from(writeGraph(graphOf(operator, size))).toString('base64')

interface ShownModels {
  readonly process: { readonly pid?: number }
  readonly models: readonly { readonly name: string }[]
}
const shownModels = async () => (await client().get('/selvedge/v1/models')).json() as ShownModels
/** Names of the ONNX models that were stored for pattern models. */
const storedModels = async () =>
  (await shownModels()).models.flatMap(({ name }) => (name.startsWith('pattern-') ? [name] : []))

beforeAll(async () => {
  const output = [1 / (1 + Math.E), Math.E / (1 + Math.E)]
  writeModel(join(folder, 'data', 'models'), {
    name: 'directions',
    graph: graphOf('Softmax'),
    document: {
      kind: 'pattern',
      inputs: [{ name: 'x', shape: [null, 2] }],
      outputs: [{ name: 'y', shape: [null, 2] }],
    },
    golden: { tolerance: 1e-5, vectors: [{ input: [0, 1], output }] },
  })
  await start()
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe('a pattern model in ONNX', () => {
  it('makes the events of the same model in JSON, through kills of its process and of the gateway', async () => {
    await create([
      ...streamEntities('d1', 'd-flow', [10.8, 56.1]),
      ...streamEntities('d2', 'd-speed', [10.8, 56.1]),
    ])
    const observableProperties = [propertyId('d-flow'), propertyId('d-speed')]
    await register({ observableProperties, model: mixture.json, labels })
    const sent = { observableProperties, model: mixture.onnx, labels, features: 'originals' }
    const { id } = await register(sent)
    for (let row = 0; row < 30; row++) {
      await observe('d1', row < 12 ? 10 + (row % 3) : 10, begin + row * minute)
      await observe('d2', 10 + (row % 3), begin + row * minute)
      if (row === 16) process.kill((await shownModels()).process.pid!, 'SIGKILL')
      if (row !== 20) continue
      await gateway.kill()
      await start()
    }
    const ends = Array.from({ length: 19 }, (_, i) => i + 11)
    await vi.waitFor(async () => expect(await events('d1')).toHaveLength(2 * ends.length), patience)
    const list = await events('d1')
    const confidence = (event: object): number =>
      (event as Record<string, { value: number }>)['urn:selvedge:ns:confidence']!.value
    for (const end of ends) {
      const [a, b, ...others] = list.filter((one) => at(one, 'windowEnd') === iso(end))
      expect(others).toEqual([])
      for (const one of [a!, b!]) expect(at(one, 'windowStart')).toBe(iso(end - 11))
      expect(at(a!, 'label')).toBe(at(b!, 'label'))
      expect(confidence(a!)).toBeCloseTo(confidence(b!), 4)
    }
    expect(new Set(list.map((one) => at(one, 'label')))).toEqual(new Set(labels))
    const shown = await client().get(`/patterns/api/model/${id}`)
    expect(shown.json()).toMatchObject({
      ...sent,
      status: { waitingWindows: 0, skippedWindows: 0, unlabelledWindows: 0, modelError: null },
    })
    expect(await storedModels()).toHaveLength(1)
    expect((await client().send('DELETE', `/patterns/api/model/${id}`, undefined)).status).toBe(204)
    expect(await storedModels()).toEqual([])
  })

  it('is a model folder of the gateway that the document names', async () => {
    await create([
      ...streamEntities('e1', 'e-flow', [10.9, 56.1]),
      ...streamEntities('e2', 'e-speed', [10.9, 56.1]),
    ])
    await register({
      observableProperties: [propertyId('e-flow'), propertyId('e-speed')],
      model: { kind: 'onnx', name: 'directions' },
      features: 'originals',
      temporal: { window: 2, step: 2 },
    })
    for (let row = 0; row < 4; row++) {
      await observe('e1', 10, begin + row * minute)
      await observe('e2', 10 + row, begin + row * minute)
    }
    await vi.waitFor(async () => expect(await events('e1')).toHaveLength(2), patience)
    // The direction is that of the second stream alone.
    expect((await events('e1')).map((one) => at(one, 'label'))).toEqual(['pattern-2', 'pattern-2'])
  })

  it('is rejected if it fails a check, and nothing of it is stored', async () => {
    const observableProperties = ['urn:p:1', 'urn:p:2']
    const rejected = async (model: unknown, more: object = {}) => {
      const body = { observableProperties, model, features: 'originals', ...more }
      const answer = await client().send('POST', '/patterns/api/model', body)
      return `${answer.status} ${(answer.json() as { message: string }).message}`
    }
    expect(await rejected(fileOf('RandomNormalLike'))).toMatch(/^400 .*RandomNormalLike is not allowed/)
    expect(await rejected(fileOf('Softmax', 3))).toMatch(/^400 .*input x has 3 numbers, expected 2/)
    expect(await rejected(fileOf('Neg'))).toMatch(/^400 model: its outputs must be the probability/)
    expect(await rejected(fileOf('Softmax'), { labels: ['one'] })).toMatch(/^400 labels: must have 2 labels/)
    expect(await rejected({ kind: 'onnx', name: 'absent' })).toMatch(
      /^400 model: .*no usable ONNX model absent/,
    )
    expect(await rejected({ kind: 'onnx', name: 'stream-window' })).toMatch(/^400 model: .*of kind fault/)
    expect(await storedModels()).toEqual([])
  })
})
