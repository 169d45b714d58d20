/**
 * Rows of components that are not implemented: each is entirely absent, so that no partial implementation is
 * mistaken for a complete one. One gateway runs with a port set for each of them. It opens no listener for
 * them, does not subscribe anywhere, and creates no entities but its own.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { type Absence, rows, rowsOf, type Table } from './rows.ts'
import { entitiesPath } from './sensor.ts'

const tables = Object.keys(rows) as Table[]
const absentRows = tables.flatMap((table) =>
  rowsOf(table).flatMap(({ name, component, absent }) =>
    absent === undefined ? [] : [{ table, name, component, absent }],
  ),
)

let gateway: GatewayProcess
let client: HttpClient

beforeAll(async () => {
  const ports = ['IDENTITY'].map((part) => `SELVEDGE_${part}_PORT`)
  gateway = await startGatewayProcess({
    env: Object.fromEntries(ports.map((name) => [name, '0'])),
  })
  client = httpClient(gateway.httpUrl)
  const sent = await client.ask('POST', '/senml', {
    headers: { 'Content-Type': 'application/senml+json' },
    body: [{ bn: 'pump:', n: 'pressure', u: 'Pa', v: 101_325 }],
  })
  expect(sent.status).toBe(204)
})
afterAll(async () => {
  const counts = Map.groupBy(absentRows, ({ component }) => component)
  const parts = [...counts].map(([component, some]) => `${component} ${some.length}`)
  process.stdout.write(`${absentRows.length} rows of the specification are not built: ${parts.join(', ')}\n`)
  await gateway.stop()
})

describe.each(tables)('%s of components that are not implemented', (table) => {
  for (const { name, absent } of absentRows.filter((row) => row.table === table)) {
    it(name, () => expectAbsent(absent))
  }
  it('are counted', () => expect(rowsOf(table).length).toBeGreaterThan(0))
})

it.each(tables.flatMap((table) => rowsOf(table)).filter(({ test }) => test !== undefined))(
  '$name is proved by a test of its component',
  ({ test }) => {
    const [file, title] = test!
    expect(readFileSync(file, 'utf8')).toContain(`'${title}'`)
  },
)

it('no absent component has a listener', () => {
  expect(listeningPorts(gateway.pid)).toEqual([gateway.httpPort, gateway.mqttPort].toSorted((a, b) => a - b))
})

async function expectAbsent(absent: Absence): Promise<void> {
  if ('route' in absent) {
    const [method, path] = absent.route
    const answer = await client.ask(method, path, method === 'POST' ? { body: {} } : {})
    expect([path, answer.status]).toEqual([path, 404])
  } else if ('subscription' in absent) {
    const answer = await client.get('/ngsi-ld/v1/subscriptions')
    const others = (answer.json() as { readonly id: string }[]).filter(
      ({ id }) => !id.startsWith('indexing:'),
    )
    expect([answer.status, others]).toEqual([200, []])
  } else if ('type' in absent) {
    const answer = await client.get(`${entitiesPath}?type=${encodeURIComponent(absent.type)}`)
    expect([answer.status, answer.json()]).toEqual([200, []])
  } else {
    const answer = await client.get(`${entitiesPath}?type=Sensor&${absent.parameter}`)
    expect(answer.status).toBe(400)
    expect(answer.text).toContain(absent.parameter.split('=')[0])
  }
}

/** Ports on which a process listens, according to the kernel. */
function listeningPorts(pid: number): number[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`)
      return /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []
    }),
  )
  const lines = ['tcp', 'tcp6'].flatMap((kind) =>
    readFileSync(`/proc/${pid}/net/${kind}`, 'utf8').trim().split('\n').slice(1),
  )
  const ports = lines.flatMap((line) => {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/)
    const isOurs = state === '0A' && sockets.has(inode ?? '')
    return isOurs ? [Number.parseInt(local!.split(':')[1]!, 16)] : []
  })
  return ports.toSorted((a, b) => a - b)
}
