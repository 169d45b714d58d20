/**
 * Models of a gateway over the real process that runs them: calls, batches, deaths of the process, changed
 * folders, assignments.
 */
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { Models } from '#inference/models.ts'
import { linearExportOf } from '#plugins/virtual-sensors/families/linear-export.ts'
import { blendedValue } from '#plugins/virtual-sensors/families/prediction.ts'
import type { VirtualSensorModel } from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { linearGraph, modelsIn, writeModel } from '#test/kit/onnx-models.ts'

let folder: string
let models: Models
let logged: { readonly event: string; readonly [fact: string]: unknown }[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-models-'))
  logged = []
})
afterEach(async () => {
  restoreLimits()
  await models.close()
  rmSync(folder, { recursive: true, force: true })
})

async function open(options: Parameters<typeof modelsIn>[2] = {}): Promise<void> {
  const log = createLog({ level: 'info', clock: systemClock, write: (line) => logged.push(JSON.parse(line)) })
  models = modelsIn(folder, log, options)
  await models.start()
}

const uploaded = () => join(folder, 'models')
const row = (...numbers: number[]): Float32Array => Float32Array.from(numbers)
const stateOf = (name: string): string | undefined => models.list().find((one) => one.name === name)?.state

describe('calls of a model', () => {
  it('start the process at the first call, and not before', async () => {
    writeModel(uploaded())
    await open()
    expect(models.list()).toMatchObject([{ name: 'linear', source: 'uploaded', state: 'unchecked' }])
    expect(models.status().pid).toBeUndefined()
    expect([...(await models.run('linear', row(1, 0, 0), 1))]).toEqual([1.5])
    expect(existsSync(`/proc/${models.status().pid}`)).toBe(true)
    expect(stateOf('linear')).toBe('loaded')
  })

  it('that wait are run as one batch, and each gets its own rows', async () => {
    writeModel(uploaded())
    await open()
    const calls = Array.from({ length: 50 }, (_, i) => models.run('linear', row(i, 0, 0, 0, i, 0), 2))
    const outputs = await Promise.all(calls)
    expect(outputs.map((one) => [...one])).toEqual(
      Array.from({ length: 50 }, (_, i) => [i + 0.5, 2 * i + 0.5]),
    )
    expect(logged.filter(({ event }) => event === 'inference.started')).toHaveLength(1)
  })

  it('are rejected beyond the ceiling of the queue, and go on afterwards', async () => {
    writeModel(uploaded())
    await open()
    setLimit('inferenceCallsMax', 3)
    const results = await Promise.allSettled(
      Array.from({ length: 5 }, () => models.run('linear', row(1, 0, 0), 1)),
    )
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ])
    expect(results[4]).toMatchObject({ reason: { code: 'inference.busy' } })
    expect([...(await models.run('linear', row(1, 0, 0), 1))]).toEqual([1.5])
  })

  it('with another number of inputs than the model has are rejected before anything runs', async () => {
    writeModel(uploaded())
    await open()
    await expect(models.run('linear', row(1, 0), 1)).rejects.toMatchObject({ code: 'model.failed' })
    await expect(models.run('absent', row(1), 1)).rejects.toMatchObject({ code: 'model.not-found' })
    expect(models.status().pid).toBeUndefined()
  })
})

describe('the process of the models', () => {
  it.each(['SIGKILL', 'SIGILL'] as const)(
    'may end by %s in a call, which fails, and comes back',
    async (signal) => {
      writeModel(uploaded())
      await open()
      await models.run('linear', row(1, 0, 0), 1)
      const { pid } = models.status()
      process.kill(pid!, 'SIGSTOP')
      const inFlight = models.run('linear', row(1, 0, 0), 1)
      const waiting = models.run('linear', row(2, 0, 0), 1)
      process.kill(pid!, signal)
      process.kill(pid!, 'SIGCONT')
      await expect(inFlight).rejects.toMatchObject({ code: 'inference.ended' })
      await expect(waiting).rejects.toMatchObject({ code: 'inference.ended' })
      await expect
        .poll(() =>
          models.run('linear', row(2, 0, 0), 1).then(
            (one) => [...one],
            () => [],
          ),
        )
        .toEqual([2.5])
      expect(models.status().pid).not.toBe(pid)
      expect(logged.filter(({ event }) => event === 'inference.ended')).toMatchObject([
        { level: 'warn', reason: signal },
      ])
    },
  )

  it('leaves it to the gateway to stop it when all processes of a group are signalled', async () => {
    writeModel(uploaded())
    await open()
    await models.run('linear', row(1, 0, 0), 1)
    const { pid } = models.status()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid!, signal)
    expect([...(await models.run('linear', row(2, 0, 0), 1))]).toEqual([2.5])
    expect(models.status().pid).toBe(pid)
    await models.close()
    expect(logged.filter(({ event }) => event === 'inference.ended')).toEqual([])
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'ends without a warning if %s reaches it before it is able to ignore that',
    async (signal) => {
      // A process that has only just started has no handlers of signals.
      const program = join(folder, 'starting.mjs')
      writeFileSync(program, 'setInterval(() => undefined, 1000)')
      writeModel(uploaded())
      await open({ program: pathToFileURL(program) })
      const [outcome] = await Promise.all([
        models.run('linear', row(1, 0, 0), 1).catch((error: unknown) => error),
        vi.waitFor(() => process.kill(models.status().pid!, signal)),
      ])
      expect(outcome).toMatchObject({ code: 'inference.ended' })
      expect(logged.filter(({ event }) => event === 'inference.ended')).toMatchObject([
        { level: 'info', reason: signal },
      ])
    },
  )

  it('is killed if a call takes too long, and the model is off after several times', async () => {
    // 60 products of 512 rows with a matrix of 512 x 512: eight thousand million multiplications.
    const size = 512
    const nodes = Array.from({ length: 60 }, (_, i) => ({
      operator: 'MatMul',
      inputs: [i === 0 ? 'x' : `h${i}`, 'weights'],
      outputs: [i === 59 ? 'y' : `h${i + 1}`],
    }))
    const graph = {
      nodes,
      weights: [{ name: 'weights', sizes: [size, size], values: new Float32Array(size * size) }],
      inputs: [{ name: 'x', sizes: [size] }],
      outputs: [{ name: 'y', sizes: [size] }],
    }
    const zeros = Array.from({ length: size }, () => 0)
    writeModel(uploaded(), {
      name: 'slow',
      graph,
      golden: { tolerance: 1e-5, vectors: [{ input: zeros, output: zeros }] },
      document: {
        inputs: [{ name: 'x', shape: [null, size] }],
        outputs: [{ name: 'y', shape: [null, size] }],
        assign: { property: 'temperature' },
      },
    })
    setLimit('inferenceCallMs', 20)
    setLimit('inferencePauseMsMax', 1)
    setLimit('modelStrikesMax', 2)
    await open()
    // A call that ends while the model is still loaded does not count.
    await vi.waitFor(async () => {
      await expect(models.run('slow', new Float32Array(size * 512), 512)).rejects.toThrow(
        /no answer within 20 ms|ended 2 times/,
      )
      expect(stateOf('slow')).toBe('refused')
    })
    expect(models.status().pid).toBeUndefined()
    expect(models.assigned({ kind: 'virtual-sensor', property: 'temperature' })).toBeUndefined()
    await expect(models.run('slow', new Float32Array(size), 1)).rejects.toThrow(/ended 2 times in its calls/)
  })

  it('is started again above its memory ceiling', async () => {
    writeModel(uploaded())
    await open()
    setLimit('inferenceBytesMax', 1024)
    setLimit('inferencePauseMsMax', 1)
    // The call that shows it is answered.
    await models.run('linear', row(1, 0, 0), 1).catch(() => undefined)
    await expect.poll(() => models.status().lastEnd).toMatch(/^memory: \d+ bytes, at most 1024 are allowed$/)
    restoreLimits()
    setLimit('inferencePauseMsMax', 1)
    await expect
      .poll(() =>
        models.run('linear', row(2, 0, 0), 1).then(
          (one) => [...one],
          () => [],
        ),
      )
      .toEqual([2.5])
  })

  it('is killed while a call takes more memory than the ceiling', async () => {
    // A file of some kB whose product has 4096 x 4096 numbers for each row: 64 MB, of 24 rows 1.5 GB.
    const size = 4096
    const ones = new Float32Array(size).fill(1)
    const graph = {
      nodes: [
        { operator: 'MatMul', inputs: ['column', 'row'], outputs: ['square'] },
        { operator: 'Unsqueeze', inputs: ['x', 'axis'], outputs: ['rows'] },
        { operator: 'Mul', inputs: ['square', 'rows'], outputs: ['squares'] },
        {
          operator: 'ReduceMax',
          inputs: ['squares'],
          outputs: ['y'],
          attributes: { axes: [2], keepdims: 0 },
        },
        { operator: 'ReduceMax', inputs: ['y'], outputs: ['z'], attributes: { axes: [1], keepdims: 1 } },
      ],
      weights: [
        { name: 'column', sizes: [size, 1], values: ones },
        { name: 'row', sizes: [1, size], values: ones },
        { name: 'axis', sizes: [1], values: BigInt64Array.of(2n) },
      ],
      inputs: [{ name: 'x', sizes: [1] }],
      outputs: [{ name: 'z', sizes: [1] }],
    }
    writeModel(uploaded(), {
      name: 'greedy',
      graph,
      golden: { tolerance: 1e-5, vectors: [{ input: [1], output: [1] }] },
      document: {
        inputs: [{ name: 'x', shape: [null, 1] }],
        outputs: [{ name: 'z', shape: [null, 1] }],
      },
    })
    await open()
    setLimit('inferenceBytesMax', 400 * 1024 * 1024)
    await expect(models.run('greedy', new Float32Array(24).fill(1), 24)).rejects.toThrow(/memory: \d+ bytes/)
  })
})

describe('the folders', () => {
  it('are watched: a changed model is used without a restart, a wrong one is refused with its reason', async () => {
    const path = writeModel(uploaded(), { document: { assign: { property: 'temperature' } } })
    const subject = { kind: 'virtual-sensor', property: 'Temperature' } as const
    let notices = 0
    setLimit('modelScanMs', 20)
    await open()
    models.onChange(() => notices++)
    expect(models.assigned(subject)).toMatchObject({ name: 'linear', version: '1', inputNumbers: 3 })
    await models.run('linear', row(1, 0, 0), 1)
    const bias = { name: 'bias', sizes: [1], values: Float32Array.from([1.5]) }
    const golden = { tolerance: 1e-5, vectors: [{ input: [0, 0, 0], output: [1.5] }] }
    const graph = { ...linearGraph, weights: [linearGraph.weights[0]!, bias] }
    writeModel(join(folder, 'next'), {
      graph,
      golden,
      document: { version: '2', assign: { property: 'temperature' } },
    })
    renameSync(path, join(folder, 'former'))
    renameSync(join(folder, 'next', 'linear'), path)
    await expect.poll(() => models.assigned(subject)?.version).toBe('2')
    expect([...(await models.run('linear', row(1, 0, 0), 1))]).toEqual([2.5])
    writeFileSync(join(path, 'model.onnx'), 'damaged')
    await expect
      .poll(() => models.run('linear', row(1, 0, 0), 1).catch((error: Error) => error.message))
      .toMatch(/model\.onnx: its SHA-256 is/)
    expect(models.assigned(subject)).toBeUndefined()
    expect(models.complaints().join()).toContain('the model linear is not used')
    rmSync(path, { recursive: true })
    await expect.poll(() => models.list()).toEqual([])
    await expect.poll(() => models.status().pid).toBeUndefined()
    expect(notices).toBeGreaterThanOrEqual(3)
  })

  it('assign models by stream, query and property, in this order, unless settings say otherwise', async () => {
    for (const [name, assign] of [
      ['by-property', { property: 'temperature' }],
      ['by-query', { q: 'altitude>100' }],
      ['by-stream', { stream: 'urn:s:1' }],
      ['elsewhere', { property: 'humidity' }],
    ] as const)
      writeModel(uploaded(), { name, document: { kind: 'fault', assign } })
    await open({ assign: [{ model: 'elsewhere', stream: 'urn:s:9' }] })
    const entity = { id: 'urn:s:2', type: 'S', altitude: { type: 'Property', value: 200 } } as never
    const nameFor = (subject: object) => models.assigned({ kind: 'fault', ...subject })?.name
    expect(nameFor({ property: 'temperature', stream: 'urn:s:1', entity })).toBe('by-stream')
    expect(nameFor({ property: 'temperature', stream: 'urn:s:2', entity })).toBe('by-query')
    expect(nameFor({ property: 'temperature', stream: 'urn:s:3' })).toBe('by-property')
    expect(nameFor({ property: 'humidity', stream: 'urn:s:4' })).toBeUndefined()
    expect(nameFor({ property: 'humidity', stream: 'urn:s:9' })).toBe('elsewhere')
    expect(models.assigned({ kind: 'pattern', property: 'temperature' })).toBeUndefined()
    expect(models.status().pid).toBeUndefined()
  })

  it('refuse a model that is assigned by a wrong query', async () => {
    writeModel(uploaded(), { document: { assign: { q: 'a==' } } })
    await open()
    expect(models.list()).toMatchObject([{ state: 'refused', reason: expect.stringContaining('assign.q') }])
  })

  it('prefer an uploaded model over a shipped one of the same name', async () => {
    writeModel(join(folder, 'shipped'))
    writeModel(uploaded(), { document: { version: '2' } })
    await open()
    expect(models.list()).toMatchObject([{ name: 'linear', source: 'uploaded', version: '2' }])
    await models.remove('linear')
    expect(models.list()).toMatchObject([{ name: 'linear', source: 'shipped', version: '1' }])
    await expect(models.remove('linear')).rejects.toMatchObject({ code: 'model.shipped' })
  })
})

describe('a linear model that was fitted here', () => {
  const linear = {
    name: 'ridge-1',
    version: '1',
    kind: 'virtual-sensor',
    coefficients: [0.7, -1.25, 3e-3],
    intercept: 4.2,
    scaler: { mean: [10, 0, 1000], deviation: [2, 0.5, 80] },
    stream: 'urn:s:1',
    licence: 'CC0-1.0',
    card: '# Ridge\n',
    examples: [
      [11, 0.1, 990],
      [8, -0.4, 1100],
    ],
  } as const

  it('is stored as an ONNX model that gives the same outputs', async () => {
    await open()
    expect(await models.storeLinear(linear)).toMatchObject({ name: 'ridge-1', isScaled: true })
    expect(models.status().pid).toBeUndefined()
    expect(models.assigned({ kind: 'virtual-sensor', stream: 'urn:s:1' })).toMatchObject({ inputNumbers: 3 })
    const [output] = await models.run('ridge-1', row(11, 0.1, 990), 1)
    expect(output).toBeCloseTo(4.2 + 0.7 * 0.5 - 1.25 * 0.2 + 3e-3 * (-10 / 80), 5)
    await models.storeLinear({ ...linear, intercept: 5.2, version: '2' })
    const [raised] = await models.run('ridge-1', row(11, 0.1, 990), 1)
    expect(raised! - output!).toBeCloseTo(1, 5)
  })

  it('may be the model of a virtual sensor, whose predictions it repeats', async () => {
    await open()
    const member = { kind: 'kriging', correlogram: { level: 0.9, range: 5000 } } as const
    const ridge = {
      kind: 'linear',
      columns: [0, 1, 4],
      penalty: 1,
      isResidual: false,
      isRoot: false,
      weights: [0.6, 0.3, 1.5],
      intercept: 2,
    } as const
    const model = {
      family: 'blend',
      sources: ['urn:a', 'urn:b'],
      distances: [1000, 2000],
      between: [
        [0, 1500],
        [1500, 0],
      ],
      holdMs: [1, 1],
      slotMs: 600_000,
      members: [
        { family: 'kriging', weight: 0.4, member },
        { family: 'ridge', weight: 0.6, member: ridge },
      ],
      error: 0.3,
      interval: {} as VirtualSensorModel['interval'],
      rows: 200,
      range: {},
    } satisfies VirtualSensorModel
    const { name } = await models.storeLinear(linearExportOf('urn:ngsi-ld:Sensor:d:t:VS', model))
    const features = row(20, 21, 19, 20, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    const [output] = await models.run(name, features, 1)
    expect(output).toBeCloseTo(blendedValue(model, Float64Array.from(features), 0), 4)
  })

  it('is rejected with its reason if it cannot be used', async () => {
    await open()
    const wrong = { ...linear, scaler: { mean: [1, 2], deviation: [1] } }
    await expect(models.storeLinear(wrong)).rejects.toThrow(/scaler\.mean/)
    expect(models.list()).toEqual([])
  })
})

describe('a board without the native library', () => {
  it('gets one clear message, and no model', async () => {
    // The real process, where no node_modules is found.
    const program = join(folder, 'inference-process.cjs')
    await build({
      entryPoints: [join(import.meta.dirname, '../../../runtime/inference/child/inference-process.ts')],
      outfile: program,
      bundle: true,
      format: 'cjs',
      platform: 'node',
      external: ['onnxruntime-node'],
      logLevel: 'silent',
    })
    writeModel(uploaded(), { document: { assign: { property: 'temperature' } } })
    await open({ program: pathToFileURL(program) })
    expect(models.assigned({ kind: 'virtual-sensor', property: 'temperature' })).toBeDefined()
    for (let i = 0; i < 3; i++)
      await expect(models.run('linear', row(1, 0, 0), 1)).rejects.toThrow(
        /onnxruntime-node cannot be loaded on/,
      )
    expect(logged.filter(({ event }) => event === 'inference.no-runtime')).toHaveLength(1)
    expect(models.assigned({ kind: 'virtual-sensor', property: 'temperature' })).toBeUndefined()
    expect(models.status().pid).toBeUndefined()
    expect(models.complaints()).toHaveLength(1)
  })
})
