/**
 * Distributed subscriptions [NGSI-LD 4.3.6, 5.8.1]: derives the subscription to create at a context source,
 * and parses the source's notifications. A source receives only the part that its registration claims. This
 * gateway renders entities for the subscriber and applies all remaining conditions.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { parseEntity } from '#ngsi-ld/entity/entity.ts'
import type { EntitySelector, TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import type { EntityReport, ReportedChange } from '#ngsi-ld/subscription/notification-data.ts'
import { isActive, isFollower, isUplink, type Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'
import { ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { timesIn } from './distribution.ts'
import type { EntityInfo, Registration, RegistrationInfo } from './registration.ts'
import { attributesOf, isOfInterest, namesOf, passes } from './registration-match.ts'
import { offers } from './registration-operations.ts'

/** The subscription for a source; undefined if no part of it applies, or if it is inactive. */
export function forwardedSubscription(
  subscription: Subscription,
  registration: Registration,
  nowMs: number,
): Subscription | undefined {
  if (!isForSources(subscription) || !isActive(subscription, nowMs)) return undefined
  const { entities, watchedAttributes, notification, q, geoQ, csf } = subscription
  if (!offers(registration, 'createSubscription') || (csf !== undefined && !passes(csf, registration)))
    return undefined
  const selectors: readonly (EntitySelector | undefined)[] =
    entities === undefined || entities.length === 0 ? [undefined] : entities
  const pairs = registration.information.flatMap((info) =>
    selectors.flatMap((selector) =>
      isOfInterest({ ...selector, attrs: watchedAttributes }, info) ? [{ info, selector }] : [],
    ),
  )
  if (pairs.length === 0) return undefined
  const named = pairs.map(({ info }) => namesOf(info))
  const claimed = named.includes(undefined) ? undefined : new Set(named.flatMap((names) => [...names!]))
  const claimedNames = (names: readonly string[] | undefined): readonly string[] | undefined =>
    claimed === undefined ? names : [...claimed].filter((name) => names?.includes(name) ?? true)
  const filterAttributes = filterAttributesOf(subscription)
  // If entities may be split across sources, this gateway applies the filters to the merged entity.
  const sourceFilters = subscription.splitEntities !== true
  const coversFilters =
    sourceFilters && (claimed === undefined || filterAttributes.every((name) => claimed.has(name)))
  const wanted = notification.attributes ?? shownBy(notification.pick)
  const attributes = claimedNames(
    wanted === undefined ? undefined : [...new Set([...wanted, ...filterAttributes])],
  )
  const watched = claimedNames(watchedAttributes)
  const chosen = selectorsFor(pairs)
  // This gateway determines frequency and form, because it merges the notifications of several sources.
  const {
    q: _q,
    geoQ: _geoQ,
    entities: _entities,
    watchedAttributes: _watched,
    scopeQ,
    ...how
  } = withoutLocalMembers(subscription)
  return {
    ...how,
    ...(chosen === undefined ? {} : { entities: chosen }),
    ...(watched === undefined || watched.length === 0 || how.timeInterval !== undefined
      ? {}
      : { watchedAttributes: watched }),
    ...(coversFilters && q !== undefined ? { q } : {}),
    ...(sourceFilters && scopeQ !== undefined ? { scopeQ } : {}),
    ...(coversFilters && geoQ !== undefined ? { geoQ } : {}),
    notification: {
      ...(attributes === undefined || attributes.length === 0 ? {} : { attributes }),
      sysAttrs: true,
      ...(notification.showChanges === true ? { showChanges: true } : {}),
      endpoint: { uri: subscription.notification.endpoint.uri, accept: 'application/ld+json' },
    },
  }
}

const filterAttributesOf = ({ q, geoQ }: Subscription): readonly string[] => [
  ...(q === undefined ? [] : attributesOf(q)),
  ...(geoQ === undefined ? [] : [geoQ.property]),
]

/** This gateway's log serves followers and uplinks; they send no notifications. */
const isForSources = (subscription: Subscription): boolean =>
  subscription.localOnly !== true &&
  subscription.asked !== undefined &&
  !isFollower(subscription) &&
  !isUplink(subscription)

/** A subscription without the members that apply only at this gateway. */
function withoutLocalMembers(subscription: Subscription) {
  const { asked: _asked, name: _name, description: _description, ...kept } = subscription
  const { lang: _lang, datasetId: _datasetId, throttling: _throttling, csf: _csf, ...others } = kept
  const { splitEntities: _split, jsonldContext: _address, ...more } = others
  const { ngsildConformance: _version, localOnly: _local, ...rest } = more
  return rest
}

/** The attributes among the members to show; undefined if names alone do not determine them. */
function shownBy(pick: readonly string[] | undefined): readonly string[] | undefined {
  if (pick === undefined || pick.some((member) => /[{}]/.test(member))) return undefined
  const names = pick.filter((member) => member !== 'id' && member !== 'type' && member !== 'scope')
  return names.length === 0 ? undefined : names
}

interface Pair {
  readonly info: RegistrationInfo
  readonly selector: EntitySelector | undefined
}

/** The entities to request from a source: the requested ones, as far as it claims them. */
function selectorsFor(pairs: readonly Pair[]): readonly EntitySelector[] | undefined {
  const chosen = new Map<string, EntitySelector>()
  for (const { info, selector } of pairs) {
    if (info.entities === undefined) {
      // It claims attributes of all entities.
      if (selector === undefined) return undefined
      chosen.set(JSON.stringify(selector), selector)
    }
    for (const entity of info.entities ?? []) {
      if (selector !== undefined && !isOfInterest(selector, { entities: [entity] })) continue
      const one = narrowed(selector, entity)
      chosen.set(JSON.stringify(one), one)
    }
  }
  return [...chosen.values()]
}

function narrowed(
  selector: EntitySelector | undefined,
  { id, idPattern, types }: EntityInfo,
): EntitySelector {
  const wanted = selector?.types
  const claims: TypeSelection =
    types.length === 1
      ? { kind: 'type', name: types[0]! }
      : { kind: 'or', parts: types.map((name) => ({ kind: 'type', name })) }
  const which = wanted === undefined || wanted.kind === 'any' ? claims : wanted
  if (id !== undefined) return { types: which, ids: [id] }
  if (selector?.ids !== undefined) return { types: which, ids: selector.ids }
  const pattern = selector?.idPattern ?? idPattern
  return { types: which, ...(pattern === undefined ? {} : { idPattern: pattern }) }
}

/**
 * Parses an item of a source's notification.
 * @throws ngsi-ld.bad-request-data naming the invalid member
 */
export function parseNotifiedEntity(json: JsonObject, context: Context, nowMs: number): EntityReport {
  const { '@context': _, ...body } = json
  const kept: Record<string, Json> = {}
  const changes: ReportedChange[] = []
  for (const [member, value] of Object.entries(body)) {
    const isHead = ['id', '@id', 'type', '@type', 'scope'].includes(member) || typeof value === 'number'
    if (isHead) {
      kept[member] = value
      continue
    }
    const left = listOf<Json>(value).filter((one) => {
      const change = changeIn(one, context.expand(member))
      if (change !== undefined) changes.push(change)
      return change?.isDeleted !== true
    })
    if (left.length > 0) kept[member] = left.length === 1 ? left[0]! : left
  }
  const isDeleted = typeof body['deletedAt'] === 'string'
  const { id, type, ...rest } = parseEntity(kept, context)
  return {
    entity: isDeleted ? { id, type } : { id, type, ...rest },
    times: timesIn(body, context),
    at: nowMs,
    ...(changes.length > 0 ? { changes } : {}),
    ...(isDeleted ? { isDeleted } : {}),
  }
}

/** The deletion or the previous value of an instance. */
function changeIn(one: Json, name: string): ReportedChange | undefined {
  if (one === ngsiLdNull) return { name, isDeleted: true, before: { type: 'Property', value: null } }
  if (!isObject(one)) return undefined
  const type = typeof one['type'] === 'string' ? one['type'] : 'Property'
  const { member } = kindOf({ type })
  const value = one[member]
  const dataset = typeof one['datasetId'] === 'string' ? { datasetId: one['datasetId'] } : {}
  const previous = one[`previous${member[0]!.toUpperCase()}${member.slice(1)}`]
  const before: AttributeInstance = { type, [member]: previous ?? null, ...dataset }
  const isNull = value === ngsiLdNull || (isObject(value) && value['@none'] === ngsiLdNull)
  if (isNull) return { name, isDeleted: true, before }
  return previous === undefined ? undefined : { name, isDeleted: false, before }
}
