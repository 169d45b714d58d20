/** export and import as processes: both file formats transfer entities and histories without loss. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type GatewayProcess, runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-transfer-'))
let gateway: GatewayProcess

const entities = [
  ...Array.from({ length: 1200 }, (_, n) => ({
    id: `urn:ngsi-ld:Room:${n}`,
    type: 'Room',
    name: { type: 'Property', value: n % 2 === 0 ? `room "${n}", west` : String(n) },
    temperature: { type: 'Property', value: n / 8, unitCode: 'CEL', observedAt: '2025-01-01T00:00:00Z' },
  })),
  {
    id: 'urn:ngsi-ld:Odd:1',
    type: ['Odd', 'https://a.example/Thing'],
    scope: ['/a', '/b'],
    expiresAt: '2099-01-01T00:00:00Z',
    'https://a.example/in': { type: 'Relationship', object: 'urn:ngsi-ld:Room:1' },
    both: [
      { type: 'Property', value: { a: [1, null] } },
      {
        type: 'Property',
        value: true,
        datasetId: 'urn:d:1',
        expiresAt: '2098-01-01T00:00:00Z',
        why: { type: 'Property', value: 'x' },
      },
    ],
  },
  { id: 'urn:ngsi-ld:Odd:2', type: 'Odd', expiresAt: '2097-01-01T00:00:00Z' },
]

const selvedge = (args: string[], input?: string): ReturnType<typeof runSelvedge> =>
  runSelvedge([...args, '--url', gateway.httpUrl], {
    env: { SELVEDGE_DATA: gateway.dataFolder },
    cwd: folder,
    ...(input !== undefined && { input }),
  })

/** The documents of an export, ordered by id. */
const documents = (lines: string): readonly { readonly id: string }[] =>
  lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: string })
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))

beforeAll(async () => {
  gateway = await startGatewayProcess()
  const lines = entities.map((entity) => `${JSON.stringify(entity)}\n`).join('')
  const { code, stdout, stderr } = await selvedge(['import', '--json'], lines)
  // If it takes more than a second, standard error has progress lines.
  expect([code, stderr.replace(/^.* per second\n/gm, ''), JSON.parse(stdout)]).toEqual([
    0,
    '',
    { imported: entities.length, refused: 0 },
  ])
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

describe('selvedge export and import', () => {
  it.each(['jsonld', 'csv'])('transfer all entities to another tenant as %s', async (format) => {
    const file = join(folder, `all.${format}`)
    const written = await selvedge(['export', '--out', file, '--json'])
    expect([written.code, JSON.parse(written.stdout)]).toEqual([0, { entities: entities.length }])
    const read = await selvedge(['import', '--file', file, '--tenant', `copy_${format}`])
    expect([read.code, read.stdout]).toEqual([0, '1,202 entities imported\n'])
    const [original, copy] = [
      await selvedge(['export']),
      await selvedge(['export', '--tenant', `copy_${format}`]),
    ]
    expect(documents(copy.stdout)).toEqual(documents(original.stdout))
    expect(documents(copy.stdout)).toHaveLength(entities.length)
  })

  it.each(['jsonld', 'csv'])('transfer observed history to another tenant as %s', async (format) => {
    const id = `urn:ngsi-ld:Meter:${format}`
    const observed = Array.from({ length: 12_500 }, (_, n) => ({
      type: 'Property',
      value: n / 4,
      observedAt: new Date(Date.UTC(2025, 0, 1) + 1000 * n).toISOString(),
    }))
    const made = await selvedge(
      ['import', '--history'],
      `${JSON.stringify({ id, type: 'Meter', flow: observed.slice(0, 7000) })}\n${JSON.stringify({ id, type: 'Meter', flow: observed.slice(7000) })}\n`,
    )
    expect([made.code, made.stdout]).toEqual([0, '2 parts of histories imported\n'])
    const file = join(folder, `history.${format}`)
    expect(
      (await selvedge(['export', '--history', '--type', 'Meter', '--q', 'flow', '--out', file])).code,
    ).toBe(0)
    const tenant = `history_${format}`
    expect((await selvedge(['import', '--history', '--file', file, '--tenant', tenant])).code).toBe(0)
    const copy = await selvedge(['export', '--history', '--type', 'Meter', '--tenant', tenant])
    const parts = copy.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; flow: { value: number; observedAt: string }[] })
      .filter((part) => part.id === id)
    expect(parts.length).toBeGreaterThan(1)
    const values = parts.flatMap(({ flow }) =>
      flow.map(({ value, observedAt }) => [value, Date.parse(observedAt)]),
    )
    expect(values).toEqual(observed.map(({ value, observedAt }) => [value, Date.parse(observedAt)]))
  })

  it.each(['jsonld', 'csv'])('transfer unobserved history to another tenant as %s', async (format) => {
    const id = `urn:ngsi-ld:Door:${format}`
    const path = `${gateway.httpUrl}/ngsi-ld/v1/entities/${id}`
    const headers = { 'Content-Type': 'application/json' }
    const patch = (body: object) =>
      fetch(`${path}/attrs`, { method: 'POST', headers, body: JSON.stringify(body) })
    const made = `${JSON.stringify({ id, type: 'Door', scope: ['/a', '/b'], state: { type: 'Property', value: 'open' } })}\n`
    expect((await selvedge(['import'], made)).code).toBe(0)
    await patch({ state: { type: 'Property', value: 'shut', by: { type: 'Property', value: 'wind' } } })
    await patch({ lock: { type: 'Property', value: true }, scope: ['/c'] })
    await fetch(`${path}/attrs/lock`, { method: 'DELETE' })
    const only = ['--type', 'Door', '--q', 'state']
    const file = join(folder, `past.${format}`)
    const entity = (await selvedge(['export', ...only])).stdout
    expect((await selvedge(['export', '--history', ...only, '--out', file])).code).toBe(0)
    const tenant = `past_${format}`
    expect((await selvedge(['import', '--tenant', tenant], entity)).code).toBe(0)
    for (let i = 0; i < 2; i++)
      expect((await selvedge(['import', '--history', '--file', file, '--tenant', tenant])).code).toBe(0)
    type Instances = Record<string, readonly { modifiedAt?: string; deletedAt?: string }[]>
    const historyOf = async (...more: string[]): Promise<Instances> => {
      const { stdout } = await selvedge(['export', '--history', ...only, ...more])
      return documents(stdout).find((one) => one.id === id) as unknown as Instances
    }
    const [original, copy] = [await historyOf(), await historyOf('--tenant', tenant)]
    expect(original['state']).toHaveLength(2)
    expect(original['lock']).toHaveLength(2)
    expect(original['scope']).toHaveLength(2)
    // The copy also contains the instance that the import of the entity wrote.
    expect(copy['lock']).toEqual(original['lock'])
    expect(copy['state']?.slice(0, 2)).toEqual(original['state'])
    expect(copy['state']).toHaveLength(3)
    expect(copy['scope']?.slice(0, 2)).toEqual(original['scope'])
  })

  it('export a selection, and never overwrite a file', async () => {
    const file = join(folder, 'part.csv')
    expect((await selvedge(['export', '--out', file, '--type', 'Room', '--q', 'temperature<0.3'])).code).toBe(
      0,
    )
    expect(readFileSync(file, 'utf8').split('\n')[1]).toBe(
      'urn:ngsi-ld:Room:0,Room,,,name,Property,"room ""0"", west",,,,',
    )
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(1 + 3 * 2)
    const again = await selvedge(['export', '--out', file])
    expect([again.code, again.stderr]).toEqual([64, expect.stringContaining('already exists') as string])
  })

  it('list rejected entities, and continue', async () => {
    const lines = [
      '{"id":"urn:ngsi-ld:New:1","type":"New"}',
      '{"id":"none","type":"New"}',
      JSON.stringify(entities[0]),
    ]
    const { code, stdout, stderr } = await selvedge(['import', '--mode', 'create'], lines.join('\n'))
    expect([code, stdout]).toEqual([1, '1 entities imported, 2 refused\n'])
    expect(stderr).toMatch(/^none: .*URI.*\nurn:ngsi-ld:Room:0: /)
  })

  it.each([
    [['import', '--mode', 'guess'], '', /--mode .* got guess/],
    [['import', '--format', 'xml'], '', /--format .* got xml/],
    [['import', '--format', 'csv'], 'name,colour\n', /unknown columns: name, colour/],
    [['import'], 'no json\n', /line 1 is not JSON/],
    [['import', '--file', 'nowhere.csv'], '', /nowhere/],
  ])('%j is rejected', async (args, input, reason) => {
    const { code, stderr } = await selvedge(args, input)
    expect([code, stderr]).toEqual([64, expect.stringMatching(reason) as string])
  })

  it('report a missing gateway', async () => {
    writeFileSync(join(folder, 'empty.jsonld'), '')
    const { code, stderr } = await runSelvedge(['export', '--url', 'http://127.0.0.1:1'], {
      env: {},
      cwd: folder,
    })
    expect([code, stderr]).toEqual([1, expect.stringContaining('no answer') as string])
  })
})
