/**
 * `npm run bench -- discovery --only graphql`: the nested query of a page (stream, sensor, property, newest observation, quality) over 100,000
 * entities, end to end over HTTP by one client. The floor is the same documents read by better-sqlite3, by id, in a
 * process that does nothing else.
 */
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { percentile, processCpuSeconds } from './processes.ts'
import { layOutGateway, removeFolder, type Server, startGateway } from './servers.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const qoi = 'https://w3id.org/iot/qoi#'
const perPage = 20
const batchOfFields = 100
const kinds = ['Sensor', 'IotStream', 'ObservableProperty', 'StreamObservation', 'QoI'] as const

const property = (value: unknown) => ({ type: 'Property', value })
const to = (object: string) => ({ type: 'Relationship', object })
const idOf = (kind: (typeof kinds)[number], i: number): string => `urn:ngsi-ld:${kind}:bench-${i}:value`
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** The entities of one field of a device. */
function fieldOf(i: number): object[] {
  const id = (kind: (typeof kinds)[number]): string => idOf(kind, i)
  const location = { type: 'GeoProperty', value: { type: 'Point', coordinates: [8 + (i % 400) / 1000, 50] } }
  const rated = { ...property('NA'), [`${qoi}hasRatedValue`]: property((i % 1000) / 1000) }
  return [
    {
      id: id('Sensor'),
      type: `${sosa}Sensor`,
      location,
      [`${sosa}observes`]: to(id('ObservableProperty')),
      [`${sosa}madeObservation`]: to(id('StreamObservation')),
      [`${qoi}max`]: property(80),
    },
    {
      id: id('IotStream'),
      type: `${iotStream}IotStream`,
      location,
      [`${iotStream}generatedBy`]: to(id('Sensor')),
      [`${iotStream}observes`]: to(id('ObservableProperty')),
      [`${qoi}hasQuality`]: to(id('QoI')),
    },
    {
      id: id('ObservableProperty'),
      type: `${sosa}ObservableProperty`,
      'http://www.w3.org/2000/01/rdf-schema#label': property(`property ${i % 10}`),
    },
    {
      id: id('StreamObservation'),
      type: `${iotStream}StreamObservation`,
      [`${iotStream}belongsTo`]: to(id('IotStream')),
      [`${sosa}madeBySensor`]: to(id('Sensor')),
      [`${sosa}hasSimpleResult`]: {
        ...property(i / 10),
        observedAt: '2026-01-01T00:00:00Z',
        unitCode: 'CEL',
      },
    },
    { id: id('QoI'), type: `${qoi}Quality`, [`${qoi}completeness`]: rated, [`${qoi}plausibility`]: rated },
  ]
}

const nested = `query Page($offset: Int) { streams(limit: ${perPage}, offset: $offset) { id generatedBy { id geo { lon lat } }
  observes { label } observation { hasSimpleResult observedAt unitCode } quality { completeness { rated } } } }`
const byLabel = `query Page($label: String) { streams(limit: ${perPage}, generatedBy: { observes: { label: $label } }) {
  id generatedBy { id } observation { hasSimpleResult } } }`

export async function benchGraphql({ quick }: { quick: boolean }): Promise<void> {
  const fields = quick ? 2000 : 20_000
  const server = await startGateway(layOutGateway())
  const { folder } = server
  try {
    await fill(server.httpPort, fields)
    say(`${fields * kinds.length} entities; pages of ${perPage} streams, one client`)
    const pages = await measure(server, 'stream, sensor, property, observation, quality', nested, (n) => ({
      offset: ((n * 37) % 50) * perPage,
    }))
    await measure(server, 'streams by the label of what their sensors observe', byLabel, (n) => ({
      label: `property ${n % 10}`,
    }))
    await server.stop({ keep: true })
    const floor = floorOf(join(folder, 'selvedge.db'), fields)
    say(`floor: the same ${perPage * kinds.length} documents by better-sqlite3: ${floor.toFixed(2)} ms`)
    say(`ratio of the nested page to its floor: ${(pages / floor).toFixed(1)}`)
  } finally {
    removeFolder(folder)
  }
}

async function fill(port: number, fields: number): Promise<void> {
  for (let from = 0; from < fields; from += batchOfFields) {
    const body = Array.from({ length: batchOfFields }, (_, i) => fieldOf(from + i)).flat()
    const answer = await post(port, '/ngsi-ld/v1/entityOperations/create', body)
    if (answer.status !== 201) throw new TypeError(`a batch was answered ${answer.status}`)
  }
  // The index follows beside; what it does for the fill is no part of a query.
  for (;;) {
    const health = await fetch(`http://127.0.0.1:${port}/indexing/api/health`)
    const { position, log } = (await health.json()) as { position: number | null; log: number }
    if (position === log) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const post = (port: number, path: string, body: unknown): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })

/** Median of reading the documents of a page by their ids, and of parsing them, in ms. */
function floorOf(file: string, fields: number): number {
  const database = new BetterSqlite3(file, { readonly: true })
  const read = database.prepare('SELECT doc FROM entity WHERE id IN (SELECT value FROM json_each(?))').pluck()
  const took: number[] = []
  for (let n = 0; n < 500; n++) {
    const from = (n * 37 * perPage) % (fields - perPage)
    const numbers = Array.from({ length: perPage }, (_, i) => from + i)
    const startedAt = performance.now()
    for (const kind of kinds) {
      const documents = read.all(JSON.stringify(numbers.map((i) => idOf(kind, i)))) as string[]
      if (documents.map((one) => JSON.parse(one) as unknown).length !== perPage) throw new TypeError(kind)
    }
    took.push(performance.now() - startedAt)
  }
  database.close()
  return percentile(took, 0.5)
}

/** Returns the median in ms. */
async function measure(
  server: Server,
  title: string,
  query: string,
  variablesOf: (n: number) => object,
): Promise<number> {
  const took: number[] = []
  const ask = async (n: number): Promise<void> => {
    const startedAt = performance.now()
    const answer = await post(server.httpPort, '/search/graphql', { query, variables: variablesOf(n) })
    const { data, errors } = (await answer.json()) as { data: { streams: unknown[] }; errors?: unknown }
    took.push(performance.now() - startedAt)
    if (errors !== undefined || data.streams.length !== perPage)
      throw new TypeError(JSON.stringify(errors ?? data))
  }
  for (let n = 0; n < 100; n++) await ask(n)
  took.length = 0
  const cpu = processCpuSeconds(server.pid)
  for (let n = 0; n < 400; n++) await ask(n)
  const spent = ((processCpuSeconds(server.pid) - cpu) / took.length) * 1000
  const [p50, p99] = [percentile(took, 0.5), percentile(took, 0.99)]
  say(`${title}: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, ${spent.toFixed(2)} ms of CPU`)
  return p50
}
