/**
 * Compares the data of a hub and its gateway, by public ports only: the entities, and the observed history of
 * every attribute of each entity that ever existed, in order. Evictions that the gateway reports, and gaps at
 * the hub, excuse differences. Returns complaints; none means that they are equal.
 */
import { httpClient } from '#test/kit/http-gateway.ts'
import { entitiesOf } from './entities.ts'
import type { Forgone } from './forgone.ts'
import { overreported, type ReportedGap, unreported } from './gaps.ts'

type Json = Record<string, unknown>

const api = '/ngsi-ld/v1'
/** Types of entities that the gateways create themselves. */
const complaintsMax = 40

/**
 * The observed instances of each attribute and dataset of an entity, as texts, in the order of the response.
 */
export async function historyOf(url: string, id: string): Promise<Map<string, string[]>> {
  const history = new Map<string, Set<string>>()
  const counts = new Map<string, string[]>()
  let after: string | undefined
  for (;;) {
    const from = after ?? '1970-01-01T00:00:00Z'
    const path = `${api}/temporal/entities/${encodeURIComponent(id)}?timerel=after&timeAt=${from}`
    const reply = await httpClient(url).get(path)
    if (reply.status === 404) return counts
    if (reply.status !== 200 && reply.status !== 206)
      throw new TypeError(`${path} was answered ${reply.status}: ${reply.text.slice(0, 300)}`)
    const ofPage = new Set<string>()
    for (const [key, text] of observationsIn(reply.json() as Json)) {
      const seen = history.get(key) ?? new Set()
      history.set(key, seen)
      const list = counts.get(key) ?? []
      counts.set(key, list)
      // Pages overlap by a millisecond; within one page nothing may appear twice.
      if (ofPage.has(key + text)) list.push(`${text} twice`)
      else if (!seen.has(text)) list.push(text)
      ofPage.add(key + text)
      seen.add(text)
    }
    if (reply.status === 200) return counts
    const range = reply.headers['content-range'] ?? ''
    const upTo = /([0-9T:.Z-]{20,})-([0-9T:.Z-]{20,})\//.exec(range)?.[2]
    if (upTo === undefined || upTo === after) throw new TypeError(`no way on in ${range}`)
    after = new Date(Date.parse(upTo) - 1).toISOString()
  }
}

/** The observed instances of a history as texts, each with its attribute and dataset. */
const observationsIn = ({
  id: _,
  type: __,
  scope: ___,
  ...attributes
}: Json): [key: string, text: string][] =>
  Object.entries(attributes).flatMap(([name, given]) =>
    ((Array.isArray(given) ? given : [given]) as Json[])
      .filter(({ observedAt }) => observedAt !== undefined)
      .map(({ instanceId: _i, ...rest }): [string, string] => [
        `${name} ${(rest['datasetId'] as string | undefined) ?? ''}`,
        `${rest['observedAt'] as string} ${JSON.stringify(sorted(rest))}`,
      ]),
  )

/** When each value of the labels of an entity, which are not observed, was written. */
async function labelsOf(url: string, id: string): Promise<Labels> {
  const path = `${api}/temporal/entities/${encodeURIComponent(id)}?attrs=label&timeproperty=modifiedAt`
  const reply = await httpClient(url).get(
    `${path}&timerel=after&timeAt=1970-01-01T00:00:00Z&options=sysAttrs`,
  )
  const times = new Map<string, string[]>()
  if (reply.status !== 200) return times
  const { label = [] } = reply.json() as { label?: Json | readonly Json[] }
  for (const one of Array.isArray(label) ? (label as readonly Json[]) : [label as Json]) {
    if (one['deletedAt'] !== undefined) continue
    const value = String(one['value'])
    times.set(value, [...(times.get(value) ?? []), String(one['modifiedAt'])])
  }
  return times
}

/** Times of writing by value. */
type Labels = ReadonlyMap<string, readonly string[]>

/** Describes wrong labels of an entity: each must be written as often at the hub as at the gateway. */
export function compareLabels(
  id: string,
  { here, there }: { readonly here: Labels; readonly there: Labels },
  { forgone, keptGaps }: Pick<Excuses, 'forgone' | 'keptGaps'>,
): string | undefined {
  const timesOf = (labels: Labels, label: string): readonly string[] => labels.get(label) ?? []
  const of = (label: string): string => {
    const [ours, theirs] = [timesOf(here, label), timesOf(there, label)]
    return `${ours.length} here, ${theirs.length} there: ${label}; at ${ours.join()} here, ${theirs.join()} there`
  }
  const more = [...there].flatMap(([label, times]) =>
    Array.from({ length: Math.max(0, times.length - timesOf(here, label).length) }, () => label),
  )
  // Evicted changes are reported by number only, and a restored hub lost some.
  if (more.length > 0 && !forgone.isForgone(id, 'label ', more)) return `labels of ${id}: ${of(more[0]!)}`
  const lost = [...here].find(([label, times]) => times.length > timesOf(there, label).length)
  return lost !== undefined && keptGaps ? `labels of ${id}: ${of(lost[0])}` : undefined
}

const sorted = (one: Json): Json =>
  Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))

export interface Sameness {
  readonly complaints: readonly string[]
  readonly entities: number
  readonly instances: number
  /** Only at the hub, and the gateway reports their eviction. */
  readonly forgone: number
  /** Only at the gateway, and a gap at the hub reports them. */
  readonly letGo: number
}

/** Excuses for a difference. */
export interface Excuses {
  readonly forgone: Forgone
  readonly gaps: readonly ReportedGap[]
  /** Whether the hub kept its gaps; a restored hub lost some. */
  readonly keptGaps: boolean
}

interface Side {
  readonly here: readonly string[]
  readonly there: readonly string[]
}

/** Compares the attribute of an entity at both, in the order of their responses. */
export function compareHistories(
  { id, key, here, there }: Side & { readonly id: string; readonly key: string },
  { forgone, gaps, keptGaps }: Excuses,
): { readonly complaint?: string; readonly forgone: number; readonly letGo: number } {
  const none = { forgone: 0, letGo: 0 }
  const name = `history of ${id} ${key}`
  const disorder = outOfOrder(here) ?? outOfOrder(there)
  if (disorder !== undefined) return { ...none, complaint: `${name} is not in order: ${disorder}` }
  const [ours, theirs] = [new Set(here), new Set(there)]
  const lost = here.filter((text) => !theirs.has(text))
  const more = there.filter((text) => !ours.has(text))
  const isTwice = [here, there].some((all) => all.some((text) => text.endsWith(' twice')))
  const isExcused = more.length === 0 || forgone.isForgone(id, key, more)
  // Evictions that were never sent must be reported too, as far as they are known.
  const evicted = forgone.evicted(id, key)
  const vanished = keptGaps ? Math.max(0, evicted - more.length) : 0
  const missing =
    unreported(gaps, { id, key, lost, vanished }) ?? overreported(gaps, { id, key, here, evicted })
  if (!isTwice && isExcused && missing === undefined) return { forgone: more.length, letGo: lost.length }
  return {
    ...none,
    complaint:
      `${name}: ${here.length} here, ${there.length} there; lost ${lost.length} ${lost.slice(0, 2).join(' | ')};` +
      ` more ${more.length} ${more.slice(0, 2).join(' | ')}; ${missing ?? ''}`,
  }
}

/** The first that precedes an older one. */
function outOfOrder(texts: readonly string[]): string | undefined {
  const timeOf = (text: string): number => Date.parse(text.split(' ', 1)[0]!)
  const at = texts.findIndex((text, i) => i > 0 && timeOf(text) < timeOf(texts[i - 1]!))
  return at < 0 ? undefined : `${texts[at - 1]} before ${texts[at]}`
}

/** `ids` are all that ever existed. */
export async function compare(
  { site, hub }: { readonly site: string; readonly hub: string },
  { types, ids, ...excuses }: { readonly types: readonly string[]; readonly ids: Iterable<string> } & Excuses,
): Promise<Sameness> {
  const complaints: string[] = []
  const [ours, theirs] = await Promise.all([entitiesOf(site, types), entitiesOf(hub, types)])
  for (const [id, entity] of ours) {
    const [a, b] = [entity, theirs.get(id)].map((one) => (one === undefined ? 'missing' : textOf(one)))
    if (a !== b) complaints.push(`${id} is ${difference(a!, b!)}`)
  }
  for (const id of theirs.keys())
    if (!ours.has(id)) complaints.push(`${id} is gone here and there at the hub`)
  let instances = 0
  let forgone = 0
  let letGo = 0
  for (const id of new Set([...ids, ...ours.keys(), ...theirs.keys()])) {
    if (complaints.length > complaintsMax) break
    const [here, there] = await Promise.all([historyOf(site, id), historyOf(hub, id)])
    const [labels, labelsThere] = await Promise.all([labelsOf(site, id), labelsOf(hub, id)])
    const wrong = compareLabels(id, { here: labels, there: labelsThere }, excuses)
    if (wrong !== undefined) complaints.push(wrong)
    for (const key of new Set([...here.keys(), ...there.keys()])) {
      const sides = { here: here.get(key) ?? [], there: there.get(key) ?? [] }
      instances += sides.here.length
      const found = compareHistories({ id, key, ...sides }, excuses)
      forgone += found.forgone
      letGo += found.letGo
      if (found.complaint !== undefined) complaints.push(found.complaint)
    }
  }
  return { complaints, entities: ours.size, instances, forgone, letGo }
}

/** An entity as text, independent of the order of members and instances. */
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
