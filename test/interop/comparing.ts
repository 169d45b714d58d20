/**
 * Whether two brokers hold the same, where they may write it differently: order, times with or without fractions, one instance
 * with or without a list, names with or without the default context. Pure.
 */
import type { Observation } from './broker-view.ts'

/** An entity without what is a matter of form. */
export type Canonical = Readonly<Record<string, unknown>>

const defaultContext = 'https://uri.etsi.org/ngsi-ld/default-context/'
const ofTheBroker = new Set(['@context', 'createdAt', 'modifiedAt', 'instanceId'])
const times = new Set(['observedAt', 'expiresAt'])

export function canonicalEntity(entity: Readonly<Record<string, unknown>>): Canonical {
  return Object.fromEntries(
    Object.entries(entity)
      .filter(([name]) => !ofTheBroker.has(name))
      .map(([name, value]) => [shortName(name), canonicalMember(name, value)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

function canonicalMember(name: string, value: unknown): unknown {
  if (name === 'type' || name === 'scope') {
    const all = [value].flat().map((one) => shortName(String(one)))
    return all.length === 1 ? all[0] : all.toSorted()
  }
  if (times.has(name)) return Date.parse(String(value))
  if (isAttribute(value)) return canonicalEntity(value)
  if (!Array.isArray(value) || value.length === 0 || !value.every(isAttribute)) return value
  const instances = value.map(canonicalEntity)
  if (instances.length === 1) return instances[0]
  return instances.toSorted((a, b) => (datasetOf(a) < datasetOf(b) ? -1 : 1))
}

const datasetOf = ({ datasetId }: Canonical): string => (typeof datasetId === 'string' ? datasetId : '')

const kinds =
  /^(Property|Relationship|GeoProperty|LanguageProperty|VocabProperty|JsonProperty|ListProperty|ListRelationship)$/
const isAttribute = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && kinds.test(String((value as { type?: unknown }).type))

const shortName = (name: string): string =>
  name.startsWith(defaultContext) ? name.slice(defaultContext.length) : name

/** Where two entities differ, one line each; empty when they are the same. */
export function entityDifferences(
  ours: Canonical | undefined,
  theirs: Canonical | undefined,
): readonly string[] {
  if (ours === undefined || theirs === undefined) {
    if (ours === theirs) return []
    return [ours === undefined ? 'is still there' : 'is not there']
  }
  const names = new Set([...Object.keys(ours), ...Object.keys(theirs)])
  return [...names]
    .filter((name) => ordered(ours[name]) !== ordered(theirs[name]))
    .map((name) => `${name} is ${brief(theirs[name])}, not ${brief(ours[name])}`)
}

const brief = (value: unknown): string => (JSON.stringify(value) ?? 'absent').slice(0, 160)

/** JSON text with members in order of their names. */
const ordered = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, one: unknown) =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  )

export interface HistoryDifference {
  readonly missing: number
  /** Observations that are there more often than once. */
  readonly repeated: number
  /** Observations that nobody made. */
  readonly foreign: number
}

export function historyDifference(
  ours: readonly Observation[],
  theirs: readonly Observation[],
): HistoryDifference {
  const wanted = new Set(ours.map(keyOf))
  const found = new Map<string, number>()
  for (const one of theirs) found.set(keyOf(one), (found.get(keyOf(one)) ?? 0) + 1)
  let missing = 0
  let repeated = 0
  let foreign = 0
  for (const key of wanted) if (!found.has(key)) missing++
  for (const [key, count] of found) {
    if (!wanted.has(key)) foreign += count
    else repeated += count - 1
  }
  return { missing, repeated, foreign }
}

const keyOf = ([value, atMs]: Observation): string => `${JSON.stringify(value)} ${atMs}`
