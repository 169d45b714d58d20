/**
 * Compares what a hub holds with what its gateway holds, by public ports only: the entities, and of each that ever was the
 * observed history of every attribute, but for what the gateway says that it let go. Returns complaints; none means that they are the same.
 */
import { httpClient } from '#test/kit/http-gateway.ts'
import type { IsForgone } from './forgone.ts'

type Json = Record<string, unknown>

const api = '/ngsi-ld/v1'
const page = 1000
/** What the gateways say of their own. */
const complaintsMax = 40

/** Entities of some types, by id. */
export async function entitiesOf(url: string, types: readonly string[]): Promise<Map<string, Json>> {
  const found = new Map<string, Json>()
  for (const type of types) {
    for (let offset = 0; ; offset += page) {
      const path = `${api}/entities?type=${encodeURIComponent(type)}&limit=${page}&offset=${offset}`
      const reply = await httpClient(url).get(path)
      if (reply.status !== 200) throw new TypeError(`${path} was answered ${reply.status}: ${reply.text}`)
      const all = reply.json() as readonly Json[]
      for (const one of all) found.set(one['id'] as string, one)
      if (all.length < page) break
    }
  }
  return found
}

/** The observed instances of each attribute and dataset of an entity, as texts, ordered by observedAt. */
export async function historyOf(url: string, id: string): Promise<Map<string, string[]>> {
  const history = new Map<string, Set<string>>()
  const counts = new Map<string, string[]>()
  let after: string | undefined
  for (;;) {
    const from = after ?? '1970-01-01T00:00:00Z'
    const path = `${api}/temporal/entities/${encodeURIComponent(id)}?timerel=after&timeAt=${from}`
    const reply = await httpClient(url).get(path)
    if (reply.status === 404) break
    if (reply.status !== 200 && reply.status !== 206)
      throw new TypeError(`${path} was answered ${reply.status}: ${reply.text.slice(0, 300)}`)
    const { id: _, type: __, scope: ___, ...attributes } = reply.json() as Json
    let upTo = '9999'
    const ofPage = new Set<string>()
    for (const [name, given] of Object.entries(attributes)) {
      const instances = (Array.isArray(given) ? given : [given]) as Json[]
      for (const one of instances) {
        if (one['observedAt'] === undefined) continue
        const { instanceId: _i, ...rest } = one
        const key = `${name} ${(one['datasetId'] as string | undefined) ?? ''}`
        const text = `${one['observedAt'] as string} ${JSON.stringify(sorted(rest))}`
        const seen = history.get(key) ?? new Set()
        history.set(key, seen)
        const list = counts.get(key) ?? []
        counts.set(key, list)
        // Pages overlap by a millisecond; within one nothing may stand twice.
        if (ofPage.has(key + text)) list.push(`${text} twice`)
        else if (!seen.has(text)) list.push(text)
        ofPage.add(key + text)
        seen.add(text)
      }
    }
    if (reply.status === 200) break
    const range = /([0-9T:.Z-]{20,})-([0-9T:.Z-]{20,})\//.exec(reply.headers['content-range'] ?? '')
    upTo = range?.[2] ?? upTo
    if (upTo === after || range === null)
      throw new TypeError(`no way on in ${reply.headers['content-range']}`)
    after = new Date(Date.parse(upTo) - 1).toISOString()
  }
  for (const list of counts.values()) list.sort()
  return counts
}

const sorted = (one: Json): Json =>
  Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))

export interface Sameness {
  readonly complaints: readonly string[]
  readonly entities: number
  readonly instances: number
  /** At the hub alone, and the gateway says that it let go of them. */
  readonly forgone: number
}

/** `ids` are those that ever were. */
export async function compare(
  { site, hub }: { readonly site: string; readonly hub: string },
  {
    types,
    ids,
    isForgone,
  }: { readonly types: readonly string[]; readonly ids: Iterable<string>; readonly isForgone: IsForgone },
): Promise<Sameness> {
  const complaints: string[] = []
  const [ours, theirs] = await Promise.all([entitiesOf(site, types), entitiesOf(hub, types)])
  for (const [id, entity] of ours) {
    const [a, b] = [entity, theirs.get(id)].map((one) => (one === undefined ? 'missing' : textOf(one)))
    if (a !== b) complaints.push(`${id} is ${difference(a!, b!)}`)
  }
  for (const id of theirs.keys())
    if (!ours.has(id)) complaints.push(`${id} is gone here and there at the hub`)
  let [instances, forgone] = [0, 0]
  for (const id of new Set([...ids, ...ours.keys(), ...theirs.keys()])) {
    if (complaints.length > complaintsMax) break
    const [here, there] = await Promise.all([historyOf(site, id), historyOf(hub, id)])
    for (const key of new Set([...here.keys(), ...there.keys()])) {
      const a = here.get(key) ?? []
      const b = there.get(key) ?? []
      instances += a.length
      if (a.length === b.length && a.every((text, i) => text === b[i])) continue
      const lost = a.filter((text) => !b.includes(text))
      const more = b.filter((text) => !a.includes(text))
      if (lost.length === 0 && a.length + more.length === b.length && isForgone(id, key, more)) {
        forgone += more.length
        continue
      }
      complaints.push(
        `history of ${id} ${key}: ${a.length} here, ${b.length} there;` +
          ` lost ${lost.length} ${lost.slice(0, 2).join(' | ')}; more ${more.length} ${more.slice(0, 2).join(' | ')}`,
      )
    }
  }
  return { complaints, entities: ours.size, instances, forgone }
}

/** An entity as text in which order of members and of instances means nothing. */
function textOf(entity: Json): string {
  const order = (value: unknown): unknown => {
    if (Array.isArray(value))
      return value.map(order).toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
    return typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value as Json)
            .map(([key, one]) => [key, order(one)] as const)
            .toSorted(([a], [b]) => (a < b ? -1 : 1)),
        )
      : value
  }
  return JSON.stringify(order(entity))
}

function difference(a: string, b: string): string {
  let i = 0
  while (i < a.length && a[i] === b[i]) i++
  const from = Math.max(0, i - 80)
  return `...${a.slice(from, i + 160)} here and ...${b.slice(from, i + 160)} at the hub`
}
