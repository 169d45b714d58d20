/**
 * `npm run bench -- discovery [--quick] [--only index|rank|graphql]`: 100,000 sensors and streams with their quality, in a real gateway. How
 * long the index takes to be built, and what others notice of it; how far it is behind 1,000 changes a second; and queries by place,
 * observed property and quality, whose floor is the same selection by better-sqlite3 on the same tables in another process.
 */
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { benchGraphql } from './graphql.ts'
import { percentile, processCpuSeconds } from './processes.ts'
import { layOutGateway, type Server, startGateway } from './servers.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const qoi = 'https://w3id.org/iot/qoi#'
const rdfsLabel = 'http://www.w3.org/2000/01/rdf-schema#label'
const properties = 10
const columns = 400
/** Degrees between two sensors; about 111 m north and 71 m east. */
const step = 0.001
const batchSize = 500
const changesPerSecond = 1000

interface Options {
  readonly quick: boolean
  readonly only: string | undefined
}

const to = (object: string) => ({ type: 'Relationship', object })
const property = (value: unknown) => ({ type: 'Property', value })
const spotOf = (i: number): [number, number] => [
  8 + (i % columns) * step,
  50 + Math.floor(i / columns) * step,
]
const sensorId = (i: number): string => `urn:ngsi-ld:Sensor:bench:${i}`
const streamId = (i: number): string => `urn:ngsi-ld:IotStream:bench:${i}`

function entitiesOf(i: number): object[] {
  return [
    {
      id: sensorId(i),
      type: `${sosa}Sensor`,
      location: { type: 'GeoProperty', value: { type: 'Point', coordinates: spotOf(i) } },
      [`${sosa}observes`]: to(`urn:ngsi-ld:ObservableProperty:${i % properties}`),
      [`${qoi}updateinterval`]: { ...property(10), [`${qoi}unit`]: property('seconds') },
      [`${qoi}valuetype`]: property('float'),
      [`${qoi}min`]: property(-30),
      [`${qoi}max`]: property(80),
    },
    {
      id: streamId(i),
      type: `${iotStream}IotStream`,
      [`${iotStream}generatedBy`]: to(sensorId(i)),
      [`${qoi}hasQuality`]: to(`urn:ngsi-ld:QoI:bench:${i}`),
    },
    {
      id: `urn:ngsi-ld:QoI:bench:${i}`,
      type: `${qoi}Quality`,
      ...Object.fromEntries(
        ['plausibility', 'completeness', 'frequency'].map((name, at) => [
          qoi + name,
          { ...property('NA'), [`${qoi}hasRatedValue`]: property(((i * (7 + at)) % 1000) / 1000) },
        ]),
      ),
    },
  ]
}

export async function benchDiscovery(options: Options): Promise<void> {
  if (options.only !== 'graphql') await benchIndex(options)
  if (options.only === undefined || options.only === 'graphql') await benchGraphql(options)
}

async function benchIndex(options: Options): Promise<void> {
  const streams = options.quick ? 10_000 : 50_000
  const server = await startGateway(layOutGateway())
  const client = clientOf(server.httpPort)
  try {
    await fillSite(client, streams)
    if (options.only !== 'rank') {
      await rebuild(client, server)
      await lag(client, server, streams)
    }
    await queries(client, server, streams)
  } finally {
    await server.stop()
  }
}

type Client = ReturnType<typeof clientOf>

function clientOf(port: number) {
  const url = `http://127.0.0.1:${port}`
  return {
    async get(path: string, headers: Record<string, string> = {}): Promise<Response> {
      const answer = await fetch(url + path, { headers })
      if (!answer.ok) throw new TypeError(`${path} answered ${answer.status}: ${await answer.text()}`)
      return answer
    },
    async send(method: string, path: string, body?: unknown): Promise<number> {
      const answer = await fetch(url + path, {
        method,
        headers: { 'Content-Type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      await answer.arrayBuffer()
      return answer.status
    },
  }
}

const latest = { 'Selvedge-Index-Position': 'latest' }
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** True when all that is on disk is in the index. */
async function isLevel(client: Client): Promise<boolean> {
  const { position, log } = (await (await client.get('/indexing/api/health')).json()) as {
    position: number | null
    log: number
  }
  return position === log
}

async function untilLevel(client: Client): Promise<void> {
  while (!(await isLevel(client))) await new Promise((resolve) => setTimeout(resolve, 50))
}

async function fillSite(client: Client, streams: number): Promise<void> {
  const startedAt = performance.now()
  await client.send(
    'POST',
    '/ngsi-ld/v1/entityOperations/create',
    Array.from({ length: properties }, (_, i) => ({
      id: `urn:ngsi-ld:ObservableProperty:${i}`,
      type: `${sosa}ObservableProperty`,
      [rdfsLabel]: property(`property ${i}`),
    })),
  )
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < streams) {
      const from = next
      next += batchSize
      const numbers = Array.from({ length: Math.min(batchSize, streams - from) }, (_, i) => from + i)
      const status = await client.send(
        'POST',
        '/ngsi-ld/v1/entityOperations/create',
        numbers.flatMap(entitiesOf),
      )
      if (status !== 201) throw new TypeError(`create answered ${status}`)
    }
  }
  await Promise.all([worker(), worker()])
  const filled = performance.now()
  await untilLevel(client)
  say(
    `${2 * streams} sensors and streams and ${streams} qualities created in ${seconds(filled - startedAt)}; the index had them ${seconds(performance.now() - filled)} later`,
  )
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

/** Everything read anew, while others ask for entities. */
async function rebuild(client: Client, { pid }: Server): Promise<void> {
  const waits: number[] = []
  let isOver = false
  const others = (async () => {
    while (!isOver) {
      const at = performance.now()
      await (await client.get(`/ngsi-ld/v1/entities/${sensorId(waits.length % 1000)}`)).arrayBuffer()
      waits.push(performance.now() - at)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  const [startedAt, cpu] = [performance.now(), processCpuSeconds(pid)]
  await client.send('POST', '/indexing/api/rebuild')
  await untilLevel(client)
  const took = performance.now() - startedAt
  isOver = true
  await others
  say(
    `rebuilt in ${seconds(took)} (${(processCpuSeconds(pid) - cpu).toFixed(1)} s of CPU); GET of an entity meanwhile: p50 ${percentile(waits, 0.5).toFixed(1)} ms, p99 ${percentile(waits, 0.99).toFixed(1)} ms, worst ${Math.max(...waits).toFixed(0)} ms`,
  )
}

/** How long after a write was answered the index includes it, while there are many. */
async function lag(client: Client, { pid }: Server, streams: number): Promise<void> {
  let isOver = false
  let written = 0
  const startedAt = performance.now()
  const cpu = processCpuSeconds(pid)
  const writer = async (): Promise<void> => {
    while (!isOver) {
      const due = ((performance.now() - startedAt) / 1000) * changesPerSecond
      if (written >= due) {
        await new Promise((resolve) => setTimeout(resolve, 1))
        continue
      }
      const i = (written++ * 7919) % streams
      await client.send('PATCH', `/ngsi-ld/v1/entities/${sensorId(i)}/attrs`, {
        [`${qoi}max`]: property(written),
      })
    }
  }
  const writers = Array.from({ length: 8 }, writer)
  const waits: number[] = []
  for (let i = 0; i < 100; i++) {
    await client.send('PATCH', `/ngsi-ld/v1/entities/${sensorId(i)}/attrs`, { [`${qoi}min`]: property(i) })
    const at = performance.now()
    await (
      await client.get(`/indexing/ngsi-ld/v1/entities?type=sosa:Sensor&id=${sensorId(i)}`, latest)
    ).arrayBuffer()
    waits.push(performance.now() - at)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  isOver = true
  await Promise.all(writers)
  const took = (performance.now() - startedAt) / 1000
  say(
    `behind ${(written / took).toFixed(0)} changes/s: p50 ${percentile(waits, 0.5).toFixed(0)} ms, p99 ${percentile(waits, 0.99).toFixed(0)} ms; ${(((processCpuSeconds(pid) - cpu) / written) * 1e6).toFixed(0)} us of CPU per change, all of it`,
  )
  await untilLevel(client)
}

/** By place, property and quality; of the index, ranked, and by bare SQL. */
async function queries(client: Client, { folder, pid }: Server, streams: number): Promise<void> {
  // A hundredth of all, in a circle.
  const metres = Math.sqrt((streams * 0.01 * 111.2 * 71.5) / Math.PI)
  const centreOf = (n: number): [number, number] => {
    const rows = Math.floor(streams / columns)
    return [
      8 + step * (40 + ((n * 37) % (columns - 80))),
      50 + step * (20 + ((n * 17) % Math.max(1, rows - 40))),
    ]
  }
  const question = (n: number): string => {
    const [x, y] = centreOf(n)
    const q = `iot-stream:generatedBy.sosa:observes==urn:ngsi-ld:ObservableProperty:${n % properties};qoi:hasQuality.qoi:completeness>=0.5`
    return new URLSearchParams({
      type: 'iot-stream:IotStream',
      georel: `near;maxDistance==${metres.toFixed(0)}`,
      geometry: 'Point',
      coordinates: JSON.stringify([x, y]),
      q,
    }).toString()
  }
  const ask = async (path: (n: number) => string): Promise<Asked> => {
    const times: number[] = []
    const spent: number[] = []
    let found = 0
    for (let n = 0; n < 320; n++) {
      const cpu = processCpuSeconds(pid)
      const at = performance.now()
      const answer = (await (await client.get(path(n))).json()) as unknown[]
      if (n >= 20) times.push(performance.now() - at)
      if (n >= 20) spent.push((processCpuSeconds(pid) - cpu) * 1000)
      found += answer.length
    }
    return { times, spent, found: found / 320 }
  }
  const both = (values: number[]): string =>
    `p50 ${percentile(values, 0.5).toFixed(1)} ms, p99 ${percentile(values, 0.99).toFixed(1)} ms`
  const tell = (title: string, { times, spent, found }: Asked): void =>
    say(
      `${title.padEnd(20)} ${both(times)}${spent === undefined ? '' : `; CPU ${both(spent)}`}; ${found.toFixed(0)} found`,
    )
  const floor = bareSql(join(folder, 'plugins', 'indexing.db'), { metres, centreOf })
  tell('bare SQL, ids only', floor)
  const indexed = await ask((n) => `/indexing/ngsi-ld/v1/entities?${question(n)}&limit=20`)
  tell('index, first 20', indexed)
  tell(
    'index, ids of all',
    await ask((n) => `/indexing/ngsi-ld/v1/entities?${question(n)}&limit=1000&pick=id`),
  )
  const weights = 'qoi:hasQuality.qoi:completeness:0.7,qoi:hasQuality.qoi:plausibility:0.3'
  const ranked = await ask(
    (n) => `/ranking/ngsi-ld/v1/entities?${question(n)}&limit=20&weights=${encodeURIComponent(weights)}`,
  )
  tell('ranked, top 20', ranked)
  const ratio = (one: { times: number[] }): string =>
    (percentile(one.times, 0.5) / percentile(floor.times, 0.5)).toFixed(1)
  say(`ratio to bare SQL at p50: index ${ratio(indexed)}, ranked ${ratio(ranked)}`)
}

interface Asked {
  /** ms. */
  readonly times: number[]
  /** ms of CPU, of all threads. */
  readonly spent?: number[]
  readonly found: number
}

interface Circle {
  readonly metres: number
  readonly centreOf: (n: number) => [number, number]
}

/** The same selection as one statement on the tables of the index. */
function bareSql(file: string, { metres, centreOf }: Circle): Asked {
  const database = new BetterSqlite3(file, { readonly: true })
  const numberOf = (text: string): unknown =>
    database.prepare('SELECT k FROM name WHERE text = ?').pluck().get(text)
  const names = [`${iotStream}generatedBy`, `${sosa}observes`, `${qoi}hasQuality`, `${qoi}completeness`].map(
    numberOf,
  )
  const statement = database
    .prepare(
      `SELECT spot.n FROM spot WHERE x1 >= ? AND x0 <= ? AND y1 >= ? AND y0 <= ? AND z0 = 1
       AND EXISTS (SELECT 1 FROM link a CROSS JOIN link b WHERE a.n = spot.n AND a.k = ? AND b.n = a.target AND b.k = ? AND b.target = ?)
       AND EXISTS (SELECT 1 FROM link a CROSS JOIN scalar s WHERE a.n = spot.n AND a.k = ? AND s.n = a.target AND s.k = ? AND s.value >= 0.5 AND s.value < '')`,
    )
    .pluck()
  const times: number[] = []
  let found = 0
  for (let n = 0; n < 320; n++) {
    const target = database
      .prepare('SELECT n FROM node WHERE id = ?')
      .pluck()
      .get(`urn:ngsi-ld:ObservableProperty:${n % properties}`)
    const [x, y] = centreOf(n)
    const [w, h] = [metres / 71_500, metres / 111_200]
    const at = performance.now()
    found += statement.all(x - w, x + w, y - h, y + h, names[0], names[1], target, names[2], names[3]).length
    if (n >= 20) times.push(performance.now() - at)
  }
  database.close()
  return { times, found: found / 320 }
}
