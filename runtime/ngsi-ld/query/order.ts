/**
 * The order of query results (GS CIM 009, 4.23): by the values of members, or by distance from a geometry.
 * Entities without the member sort last in both directions. Texts are ordered by the rules of Unicode
 * collation. Keys are plain JSON, so that a page can start after a key.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { figureDistanceMeters } from '#ngsi-ld/geo/distance.ts'
import { type Figure, figureOf } from '#ngsi-ld/geo/figure.ts'
import { checkGeometry } from '#ngsi-ld/geo/geometry.ts'
import { isObject, listOf } from '#ngsi-ld/values/json.ts'
import { badRequestData, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { byUnit, compareKeys, type OrderKey, orderKey, timeKey } from './order-key.ts'
import { type QueryPath, timeMembers } from './query.ts'
import { contentsAt, type QueryTimes } from './query-match.ts'
import { parseQuery } from './query-parse.ts'

interface OrderTerm {
  readonly path: QueryPath
  readonly descending: boolean
  /** Compare distances, not values. */
  readonly far: boolean
}

export interface EntityOrder {
  readonly terms: readonly OrderTerm[]
  /** The geometry from which distances are measured. */
  readonly from?: { readonly type: string; readonly coordinates: Json } | undefined
  /** Language tag whose rules order texts; by default the root collation. */
  readonly collation?: string | undefined
}

/** The unparsed parameters. */
export interface OrderInput {
  readonly orderBy?: string | undefined
  readonly orderFrom?: string | undefined
  readonly orderGeometry?: string | undefined
  readonly collation?: string | undefined
}

/**
 * Parses an order; undefined if none is given.
 * @throws ngsi-ld.bad-request-data, ngsi-ld.too-complex
 */
export function parseOrder(input: OrderInput, expand: (term: string) => string): EntityOrder | undefined {
  const { orderBy, orderFrom, orderGeometry, collation } = input
  if (orderBy === undefined) {
    const lone = (['orderFrom', 'orderGeometry', 'collation'] as const).find(
      (name) => input[name] !== undefined,
    )
    if (lone !== undefined) throw badRequestData('is allowed only with orderBy', lone)
    return undefined
  }
  if (orderGeometry !== undefined && orderFrom === undefined)
    throw badRequestData('is allowed only with orderFrom', 'orderGeometry')
  const from = orderFrom === undefined ? undefined : parseFrom(orderFrom, orderGeometry ?? 'Point')
  const texts = orderBy.split(',')
  if (texts.length > limits.queryTermsMax.value) throw tooComplex('orderBy has too many members')
  return {
    terms: texts.map((text) => parseTerm(text, expand, from !== undefined)),
    from,
    collation: collation === undefined ? undefined : checkCollation(collation),
  }
}

const directions: ReadonlySet<string> = new Set(['asc', 'desc', 'dist-asc', 'dist-desc'])

function parseTerm(text: string, expand: (term: string) => string, hasOrigin: boolean): OrderTerm {
  const [member = '', direction = 'asc', ...more] = text.split(';').map((part) => part.trim())
  if (!directions.has(direction) || more.length > 0)
    throw badRequestData(`expected MEMBER, MEMBER;asc or MEMBER;desc in "${text}"`, 'orderBy')
  const tree = parseQuery(member, expand, { field: 'orderBy' })
  if (tree.kind !== 'exists' || tree.path.linked !== undefined)
    throw badRequestData(`"${member}" is not a path to a member`, 'orderBy')
  const far = direction.startsWith('dist-')
  if (far && !hasOrigin) throw badRequestData(`${direction} requires orderFrom`, 'orderBy')
  return { path: tree.path, descending: direction.endsWith('desc'), far }
}

function parseFrom(coordinates: string, type: string): { type: string; coordinates: Json } {
  let parsed: Json
  try {
    parsed = JSON.parse(coordinates) as Json
  } catch {
    throw badRequestData('must be a JSON array', 'orderFrom')
  }
  const geometry = { type, coordinates: parsed }
  checkGeometry(geometry, 'orderFrom')
  return geometry
}

function checkCollation(tag: string): string {
  try {
    if (Intl.Collator.supportedLocalesOf(localeOf(tag)).length > 0) return tag
  } catch {
    // Not a language tag.
  }
  throw badRequestData(`${tag} is not a supported language`, 'collation')
}

/** The root collation has no locale of its own; English uses it unchanged. */
const localeOf = (tag: string): string => tag.replace(/^und(?=-|$)/i, 'en')

/** The comparison strength stated in the tag (RFC 6067), which a locale alone does not apply. */
const strengths: Readonly<Record<string, Intl.CollatorOptions['sensitivity']>> = {
  level1: 'base',
  level2: 'accent',
  level3: 'variant',
  level4: 'variant',
  identic: 'variant',
}

function collatorOf(tag = 'und'): Intl.Collator {
  const strength = /-u-(?:[a-z0-9-]+-)?ks-([a-z0-9]+)/i.exec(tag)?.[1]?.toLowerCase() ?? ''
  const sensitivity = strengths[strength]
  return new Intl.Collator(localeOf(tag), sensitivity === undefined ? {} : { sensitivity })
}

export interface CompiledOrder {
  keysOf(entity: Entity, times: QueryTimes): readonly OrderKey[]
  compare(a: readonly OrderKey[], b: readonly OrderKey[]): number
}

export function compileOrder({ terms, from, collation }: EntityOrder): CompiledOrder {
  const origin = from === undefined ? undefined : figureOf(from)
  const { compare: compareTexts } = collatorOf(collation)
  return Object.freeze({
    keysOf: (entity, times) => terms.map((term) => keyOf(term, entity, { times, origin })),
    compare(a, b) {
      for (const [index, { descending }] of terms.entries()) {
        const [left, right] = [a[index] ?? null, b[index] ?? null]
        if (left === right) continue
        const order = compareKeys(left, right, compareTexts)
        // Null sorts last in both directions.
        if (order !== 0) return descending && left !== null && right !== null ? -order : order
      }
      return 0
    },
  } satisfies CompiledOrder)
}

function keyOf(
  { path, far }: OrderTerm,
  entity: Entity,
  { times, origin }: { readonly times: QueryTimes; readonly origin: Figure | undefined },
): OrderKey {
  const [name] = path.names
  const isMember = path.names.length === 1 && (name === 'id' || name === 'type' || name === 'scope')
  const values = isMember ? [memberOf(entity, name)] : contentsAt(path, entity, times)
  const place = origin === undefined ? undefined : values.find(isObject)
  const figure = place === undefined ? undefined : figureOf(place)
  if (figure !== undefined) return figureDistanceMeters(origin!, figure)
  // A value that is not a geometry has no distance, and sorts after all that have one.
  if (far) return null
  const [value] = values
  const isTime = path.member === undefined && timeMembers.has(path.names.at(-1)!)
  return isTime && typeof value === 'string' ? timeKey(value) : orderKey(value)
}

function memberOf(entity: Entity, name: 'id' | 'type' | 'scope'): Json | undefined {
  const value = entity[name]
  return value === undefined ? undefined : [...listOf(value)].sort(byUnit).join()
}
