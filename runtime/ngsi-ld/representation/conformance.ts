/**
 * Converts entities to an earlier version of the standard (GS CIM 009, 4.3.6.8, since 1.9): kinds of
 * attributes unknown to that version become the nearest known kind, unknown members are removed. Pure: it
 * does not modify the stored entity, and returns the same object if no amendment is necessary.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Attribute, AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { isSubAttribute } from '#ngsi-ld/entity/attribute-kind.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { isObject, listOf } from '#ngsi-ld/values/json.ts'

/** The newest supported version, as its number after the `1.`. */
const newest = 9
const multiplicity = 3

type Compact = (name: string) => string

export interface Amendment {
  /** The version of the response, as `major.minor`. */
  readonly version: string
  entity(entity: Entity, compact: Compact): Entity
  instance<I extends AttributeInstance>(instance: I, compact: Compact): I
  /** Whether any entity or instance was amended so far. */
  isAltered(): boolean
}

/** The number after the `1.` of a version such as 1.6 or 1.6.1; undefined if the text is not a version. */
export function minorOf(text: string): number | undefined {
  const [, major, minor] = /^(\d{1,3})\.(\d{1,3})(?:\.\d{1,3})?$/.exec(text.trim()) ?? []
  if (major === undefined || Number(major) === 0) return undefined
  return Number(major) > 1 ? newest : Math.min(Number(minor), newest)
}

/** The version that a Prefer header requests [RFC 7240 2]; an unreadable one is ignored. */
export function preferredMinor(prefer: string | undefined): number | undefined {
  const [, text] = /(?:^|[,;\s])ngsi-ld\s*=\s*"?([^",;\s]*)/i.exec(prefer ?? '') ?? []
  return text === undefined ? undefined : minorOf(text)
}

export function createAmendment(minor: number): Amendment {
  let isAltered = false
  const altered = <T>(value: T): T => {
    isAltered = true
    return value
  }
  const instance = <I extends AttributeInstance>(whole: I, compact: Compact): I => {
    const amended = amendInstance(whole, minor, compact)
    return amended === whole ? whole : (altered(amended) as I)
  }
  return Object.freeze({
    version: `1.${minor}`,
    instance,
    isAltered: () => isAltered,
    entity(entity: Entity, compact: Compact) {
      if (minor >= newest) return entity
      const members: Record<string, Attribute | string | readonly string[]> = {}
      let differs = false
      const put = (name: string, value: Attribute | string | readonly string[] | undefined): void => {
        if (value !== entity[name]) differs = true
        if (value !== undefined) members[name] = value
      }
      put('id', entity.id)
      put('type', minor < multiplicity ? listOf<string>(entity.type)[0] : entity.type)
      put('scope', minor < 4 ? undefined : entity.scope)
      put('expiresAt', undefined)
      for (const name of attributeNames(entity)) {
        const before = instancesOf(entity, name)
        const kept = minor < multiplicity ? [defaultOf(before)] : before
        const after = kept.map((one) => instance(one, compact))
        const isSame = after.length === before.length && after.every((one, i) => one === before[i])
        put(name, isSame ? (entity[name] as Attribute) : after.length === 1 ? after[0] : after)
      }
      return differs ? altered(members as Entity) : entity
    },
  } satisfies Amendment)
}

const defaultOf = (instances: readonly AttributeInstance[]): AttributeInstance =>
  instances.find(({ datasetId }) => datasetId === undefined) ?? instances[0]!

/** The version that introduced a member, by the member's name. */
const memberSince: Readonly<Record<string, number>> = {
  datasetId: multiplicity,
  observedAt: 3,
  unitCode: 3,
  objectType: 8,
  valueType: newest,
  expiresAt: newest,
  ngsildproof: newest,
}

/** Kinds added later: the version that introduced each, its replacement, and its value member. */
const fallbacks: Readonly<
  Record<
    string,
    {
      readonly since: number
      readonly type: 'Property' | 'Relationship'
      readonly from: string
      readonly read: (value: Json, compact: Compact) => Json
    }
  >
> = {
  LanguageProperty: { since: 4, type: 'Property', from: 'languageMap', read: (map) => map },
  JsonProperty: { since: 8, type: 'Property', from: 'json', read: (json) => json },
  VocabProperty: {
    since: 8,
    type: 'Property',
    from: 'vocab',
    read: (vocab, compact) =>
      Array.isArray(vocab) ? (vocab as string[]).map(compact) : compact(vocab as string),
  },
  ListProperty: { since: 8, type: 'Property', from: 'valueList', read: (list) => list },
  ListRelationship: {
    since: 8,
    type: 'Relationship',
    from: 'objectList',
    read: (list) => listOf<Json>(list).map((item) => (isObject(item) ? item['object']! : item)),
  },
}

function amendInstance(whole: AttributeInstance, minor: number, compact: Compact): AttributeInstance {
  const known = fallbacks[whole.type]
  const fallback = known !== undefined && minor < known.since ? known : undefined
  let differs = fallback !== undefined
  const amended: Record<string, Json> = {}
  for (const [name, value] of Object.entries(whole)) {
    if (value === undefined) continue
    if (fallback !== undefined && name === 'type') amended['type'] = fallback.type
    else if (name === fallback?.from) {
      amended[fallback.type === 'Property' ? 'value' : 'object'] = fallback.read(value, compact)
    } else if (minor < (memberSince[name] ?? 0)) differs = true
    else {
      const after = isSubAttribute(name) ? amendSubAttribute(value, minor, compact) : value
      if (after !== value) differs = true
      amended[name] = after
    }
  }
  return differs ? (amended as unknown as AttributeInstance) : whole
}

/** Returns the same value if nothing in it changes. */
function amendSubAttribute(value: Json, minor: number, compact: Compact): Json {
  const before = listOf<Json>(value)
  const after = before.map((one) =>
    isObject(one)
      ? (amendInstance(one as unknown as AttributeInstance, minor, compact) as unknown as Json)
      : one,
  )
  if (after.every((one, i) => one === before[i])) return value
  return Array.isArray(value) ? after : after[0]!
}
