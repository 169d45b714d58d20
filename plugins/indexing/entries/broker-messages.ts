/**
 * What another broker tells, as the index takes it in: entities and deletions out of pages and notifications, in any of the
 * forms that brokers send. Pure and total: an item that cannot be read is told as such and harms no other.
 */
import type { Json } from '#contract'
import { type Context, compileContext, coreContext } from '#ngsi-ld/context/context.ts'
import { parseNotifiedEntity } from '#ngsi-ld/federation/forwarded-subscription.ts'
import { isList, isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import type { ToldEntity } from './entries.ts'

export interface Items {
  readonly entities: readonly ToldEntity[]
  /** Ids. */
  readonly deleted: readonly string[]
  /** Why items could not be read. */
  readonly unreadable: readonly string[]
}

export function itemsOf(items: readonly Json[], now: number): Items {
  const entities: ToldEntity[] = []
  const deleted: string[] = []
  const unreadable: string[] = []
  for (const item of items) {
    try {
      const { entity, isDeleted } = parseNotifiedEntity(item as JsonObject, contextOf(item), now)
      if (isDeleted === true) deleted.push(entity.id)
      else {
        const text = JSON.stringify(entity)
        entities.push({
          id: entity.id,
          types: listOf(entity.type),
          entity: () => entity,
          text: () => text,
          times: () => ({ created: now }),
        })
      }
    } catch (error) {
      unreadable.push((error as Error).message)
    }
  }
  return { entities, deleted, unreadable }
}

/** Entities in a body that notifies: in `data`, as a list or one, or the body itself; undefined where there are none. */
export function notifiedItems(body: Json): readonly Json[] | undefined {
  if (!isObject(body)) return isList(body) ? body : undefined
  const data = own(body, 'data')
  if (data !== undefined) {
    if (isObject(data) && isList(own(data, 'features'))) return undefined
    return isList(data) || isObject(data) ? listOf<Json>(data) : undefined
  }
  return typeof own(body, 'id') === 'string' && body['type'] !== 'Notification' ? [body] : undefined
}

/** The context that an item brings; documents that would have to be fetched add nothing, since IRIs need none. */
function contextOf(item: Json): Context {
  const local = isObject(item) ? own(item, '@context') : undefined
  if (local === undefined) return coreContext
  const context = compileContext(local, () => ({ '@context': {} }))
  return 'expand' in context ? context : coreContext
}

/** A list of entities as a broker answers one; undefined for anything else. */
export function listIn(text: string): readonly Json[] | undefined {
  const json = jsonIn(text)
  return isList(json) && json.every(isObject) ? json : undefined
}

export function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
