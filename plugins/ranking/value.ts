/**
 * Reads numbers, links, times and places from entities in any format that a broker may return: normalized,
 * concise or simplified, with names in the client's context. Pure and total: the result is a value or
 * undefined.
 */
import type { Json } from '#contract'
import type { GeoPosition } from '#ngsi-ld/geo/figure.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { isUri } from '#ngsi-ld/values/names.ts'

/** Expands a name in a response or a weight to a comparable form. */
export type ExpandName = (name: string) => string

/**
 * Finds attributes whose name may be spelled differently in the response. It remembers the names that it has
 * met, so it must not outlive a ranking.
 */
export type AttributeFinder = ReturnType<typeof createAttributeFinder>

export function createAttributeFinder(expand: ExpandName) {
  const found = new Map<string, string>()
  const expanded = new Map<string, string>()
  const expandOnce = (name: string): string => {
    const known = expanded.get(name)
    if (known !== undefined) return known
    const made = expand(name)
    expanded.set(name, made)
    return made
  }
  return Object.freeze({
    /** The key of the attribute with that name, in any spelling. */
    keyOf(holder: JsonObject, name: string): string | undefined {
      if (Object.hasOwn(holder, name)) return name
      const usual = found.get(name)
      if (usual !== undefined && Object.hasOwn(holder, usual)) return usual
      const wanted = expandOnce(name)
      for (const key of Object.keys(holder)) {
        if (ownMembers.has(key) || expandOnce(key) !== wanted) continue
        found.set(name, key)
        return key
      }
      return undefined
    },
  })
}

/** Members that are never attributes. */
const ownMembers: ReadonlySet<string> = new Set(['id', 'type', '@context', 'scope', 'value', 'object'])

const rated = 'https://w3id.org/iot/qoi#hasRatedValue'
const absolute = 'https://w3id.org/iot/qoi#hasAbsoluteValue'

/** The instance without datasetId, or else the first one. */
export function instanceOf(attribute: Json): Json | undefined {
  if (!isList(attribute)) return attribute
  return attribute.find((one) => isObject(one) && own(one, 'datasetId') === undefined) ?? attribute[0]
}

/**
 * The number in an attribute: its value, also as text such as `0.8` or `0.8^^xsd:double`. If the value is not
 * a number, such as `NA`, its qoi:hasRatedValue or qoi:hasAbsoluteValue. NaN without a number.
 */
export function numberOf(attribute: Json, finder: AttributeFinder): number {
  const instance = instanceOf(attribute)
  if (!isObject(instance)) return plainNumber(instance)
  const direct = plainNumber(own(instance, 'value'))
  if (!Number.isNaN(direct)) return direct
  for (const name of [rated, absolute]) {
    const key = finder.keyOf(instance, name)
    const nested = key === undefined ? undefined : instanceOf(instance[key]!)
    const value = plainNumber(isObject(nested) ? own(nested, 'value') : nested)
    if (!Number.isNaN(value)) return value
  }
  return Number.NaN
}

function plainNumber(value: Json | undefined): number {
  if (typeof value === 'number') return Number.isFinite(value) ? value : Number.NaN
  if (typeof value === 'string') return textNumber(value)
  if (isObject(value) && Object.hasOwn(value, '@value')) return plainNumber(value['@value'])
  return Number.NaN
}

/** Decimal text, optionally followed by a datatype. */
export function textNumber(text: string): number {
  const [, digits] = /^\s*"?([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"?\s*(?:\^\^\S+)?\s*$/i.exec(text) ?? []
  const value = digits === undefined ? Number.NaN : Number(digits)
  return Number.isFinite(value) ? value : Number.NaN
}

/** Target ids of a relationship; in simplified form it is one URI or several. */
export function targetsOf(attribute: Json): readonly string[] {
  return listOf<Json>(attribute).flatMap((instance): readonly string[] => {
    if (!isObject(instance)) return typeof instance === 'string' && isUri(instance) ? [instance] : []
    const objects = own(instance, 'object') ?? own(instance, 'objectList')
    if (objects === undefined) return []
    return listOf<Json>(objects).flatMap((one) => {
      const id = isObject(one) ? own(one, 'object') : one
      return typeof id === 'string' && isUri(id) ? [id] : []
    })
  })
}

/** The point of a GeoProperty or a geometry; for other geometries, the first position. */
export function positionOf(attribute: Json | undefined): GeoPosition | undefined {
  const instance = attribute === undefined ? undefined : instanceOf(attribute)
  if (!isObject(instance)) return undefined
  const geometry = own(instance, 'coordinates') === undefined ? own(instance, 'value') : instance
  let place = isObject(geometry) ? own(geometry, 'coordinates') : undefined
  while (isList(place) && isList(place[0])) place = place[0]
  if (!isList(place) || place.length < 2) return undefined
  return place.every((part) => typeof part === 'number') ? place : undefined
}

/** When an attribute was observed, ms: its observedAt, or its value if that is a time. */
export function timeOf(attribute: Json | undefined): number | undefined {
  const instance = attribute === undefined ? undefined : instanceOf(attribute)
  const texts = isObject(instance)
    ? [own(instance, 'observedAt'), unwrapped(own(instance, 'value'))]
    : [instance]
  for (const text of texts) {
    const time = typeof text === 'string' ? dateTimeToMs(text.replace(/^"|"?\^\^\S+$/g, '')) : undefined
    if (time !== undefined) return time
  }
  return undefined
}

const unwrapped = (value: Json | undefined): Json | undefined =>
  isObject(value) ? own(value, '@value') : value
