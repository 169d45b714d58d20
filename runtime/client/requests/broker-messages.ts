/**
 * Parses what other brokers send: entities and deletions from pages and notifications, in all forms that
 * brokers use. Pure. An item that cannot be read is reported and does not affect the others.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { type Context, compileContext, coreContext } from '#ngsi-ld/context/context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { parseNotifiedEntity } from '#ngsi-ld/federation/forwarded-subscription.ts'
import { isList, isObject, type JsonObject, listOf, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export interface BrokerItems {
  /** Normalized, with canonical names, without system attributes. */
  readonly entities: readonly Entity[]
  /** Ids of deleted entities. */
  readonly deleted: readonly string[]
  /** Reasons, one per item that could not be read. */
  readonly unreadable: readonly string[]
}

export function itemsOf(
  items: readonly Json[],
  now: number,
  contextOf: (item: Json) => Context = contextIn,
): BrokerItems {
  const entities: Entity[] = []
  const deleted: string[] = []
  const unreadable: string[] = []
  for (const item of items) {
    const members = isObject(item) ? Object.keys(item).length : 0
    if (members > limits.clientMembersMax.value) {
      unreadable.push(`an entity has ${members} members, at most ${limits.clientMembersMax.value} are read`)
      continue
    }
    try {
      const { entity, isDeleted } = parseNotifiedEntity(item as JsonObject, contextOf(item), now)
      if (isDeleted === true) deleted.push(entity.id)
      else entities.push(entity)
    } catch (error) {
      unreadable.push((error as Error).message)
    }
  }
  return { entities, deleted, unreadable }
}

/** @throws ngsi-ld.bad-request-data if there is nothing to apply. */
export function nonEmpty(items: BrokerItems): BrokerItems {
  if (items.entities.length === 0 && items.deleted.length === 0)
    throw badRequestData(items.unreadable[0] ?? 'has no entity', 'data')
  return items
}

/**
 * Entities in a notification body: in `data` (a list or one object), or the body itself. Undefined if none.
 * @throws ngsi-ld.bad-request-data for too many
 */
export function notifiedItems(body: Json): readonly Json[] | undefined {
  const items = itemsIn(body)
  const most = limits.clientItemsMax.value
  if (items !== undefined && items.length > most)
    throw badRequestData(`has ${items.length} entities, at most ${most} are taken`, 'body')
  return items
}

function itemsIn(body: Json): readonly Json[] | undefined {
  if (!isObject(body)) return isList(body) ? body : undefined
  const data = own(body, 'data')
  if (data !== undefined) {
    if (isObject(data) && isList(own(data, 'features'))) return undefined
    return isList(data) || isObject(data) ? listOf<Json>(data) : undefined
  }
  return typeof own(body, 'id') === 'string' && body['type'] !== 'Notification' ? [body] : undefined
}

/** The context of an item. Remote contexts are not fetched: full IRIs need none. */
function contextIn(item: Json): Context {
  const local = isObject(item) ? own(item, '@context') : undefined
  if (local === undefined) return coreContext
  const context = compileContext(local, () => ({ '@context': {} }))
  return 'expand' in context ? context : coreContext
}

/** Parses a broker's response as a list of entities. Undefined for anything else. */
export function listIn(text: string): readonly Json[] | undefined {
  const json = parsedJson(text)
  return isList(json) && json.every(isObject) ? json : undefined
}
