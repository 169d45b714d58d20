/**
 * What the soak asks of two gateways together: a tenant whose depots are partly here and partly at a context source, and
 * whose crates are there, in which depots are read and found by what they link to. It is a tenant of its own,
 * because where a source is registered plain reads take another way.
 */
import type { Server } from './servers.ts'

const depots = 200
const tenant = { 'NGSILD-Tenant': 'shared' }
const base = '/ngsi-ld/v1'
const depotId = (i: number): string => `urn:ngsi-ld:Depot:${i}`

/** A success, and what it says. */
export async function askAt(
  { httpPort }: Server,
  method: string,
  path: string,
  {
    body,
    headers = {},
  }: { readonly body?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${httpPort}${encodeURI(path)}`, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    ...(body === undefined ? {} : { body }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new TypeError(`${method} ${path} answered ${answer.status}: ${text.slice(0, 500)}`)
  // What a source could not answer is missing, though the answer is a success.
  const warning = answer.headers.get('NGSILD-Warning')
  if (warning !== null) throw new TypeError(`${method} ${path} was answered with a warning: ${warning}`)
  return text
}

/** Depots on both sides, each of which keeps a crate that is at the source; the first of two is here. */
export async function share(gateway: Server, source: Server): Promise<void> {
  const depot = (i: number): object => ({
    id: depotId(i),
    type: 'Depot',
    number: { type: 'Property', value: i },
    keeps: { type: 'Relationship', object: `urn:ngsi-ld:Crate:${i}`, objectType: 'Crate' },
  })
  const crate = (i: number): object => ({
    id: `urn:ngsi-ld:Crate:${i}`,
    type: 'Crate',
    weight: { type: 'Property', value: i },
  })
  const all = Array.from({ length: depots }, (_, i) => i)
  const create = async (at: Server, entities: readonly object[]): Promise<void> => {
    await askAt(at, 'POST', `${base}/entityOperations/create`, {
      body: JSON.stringify(entities),
      headers: tenant,
    })
  }
  await create(gateway, all.filter((i) => i % 2 === 0).map(depot))
  await create(source, [...all.filter((i) => i % 2 === 1).map(depot), ...all.map(crate)])
  await register(gateway, 'urn:soak:source', `http://127.0.0.1:${source.httpPort}`, [
    { type: 'Depot' },
    { type: 'Crate' },
  ])
}

async function register(
  gateway: Server,
  id: string,
  endpoint: string,
  entities: readonly object[],
): Promise<void> {
  const registration = {
    id,
    type: 'ContextSourceRegistration',
    endpoint,
    tenant: 'shared',
    information: [{ entities }],
    operations: ['retrieveOps', 'updateOps'],
  }
  await askAt(gateway, 'POST', `${base}/csourceRegistrations`, {
    body: JSON.stringify(registration),
    headers: tenant,
  })
}

/** Registration number `n`, of one entity that nobody asks for, and its end. */
export async function comeAndGo(gateway: Server, n: number): Promise<void> {
  const id = `urn:soak:source:${n}`
  await register(gateway, id, 'http://127.0.0.1:9', [{ type: `Nothing${n}`, id: `${id}:one` }])
  await askAt(gateway, 'DELETE', `${base}/csourceRegistrations/${id}`, { headers: tenant })
}

/** Request number `n` in which both have a part. @throws where the answer is not whole */
export async function askBoth(gateway: Server, n: number): Promise<void> {
  const i = (n * 7919) % depots
  const one = `${base}/entities/${depotId(i)}`
  const count = (text: string): number => (JSON.parse(text) as readonly unknown[]).length
  const expectAll = (text: string, wanted: number): void => {
    if (count(text) !== wanted) throw new TypeError(`${count(text)} depots were found, and not ${wanted}`)
  }
  switch (n % 4) {
    case 0: {
      await askAt(gateway, 'GET', one, { headers: tenant })
      return
    }
    case 1: {
      const text = await askAt(gateway, 'GET', `${one}?join=inline`, { headers: tenant })
      if (!text.includes('"weight"'))
        throw new TypeError(`the response has a depot without its crate: ${text}`)
      return
    }
    case 2: {
      const query = `${base}/entities?type=Depot&q=number<${depots / 4}&limit=100`
      expectAll(await askAt(gateway, 'GET', query, { headers: tenant }), depots / 4)
      return
    }
    default: {
      const query = `${base}/entities?type=Depot&join=inline&q=keeps{Crate:weight}<20&limit=100`
      expectAll(await askAt(gateway, 'GET', query, { headers: tenant }), 20)
    }
  }
}
