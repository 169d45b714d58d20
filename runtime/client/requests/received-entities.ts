/**
 * Entities as brokers and clients send them to a plugin. Pure. Short names are those of the platform, and
 * the values of keyValues become Relationships where the platform's model has them.
 */

import type { Json } from '#contract'
import { iotStream, qoi, sosa } from '#contract/vocabulary.ts'
import { type Context, compileContext, coreContext } from '#ngsi-ld/context/context.ts'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { type BrokerItems, itemsOf, notifiedItems } from './broker-messages.ts'

const relationships: readonly string[] = [
  iotStream.generatedBy,
  iotStream.belongsTo,
  iotStream.observes,
  iotStream.providedBy,
  qoi.hasQuality,
  sosa.observes,
  sosa.isHostedBy,
  sosa.madeBySensor,
  sosa.observedProperty,
]

const { '@context': platformTerms } = platformContextDocument as { readonly '@context': Json }

/** Reads the contexts of items; the one compiled last is kept, since items of a sender have the same. */
export function createItemReader() {
  let last: { readonly key: string; readonly context: Context } | undefined

  function cached(local: Json | undefined): Context {
    const key = JSON.stringify(local ?? null)
    if (last?.key !== key) last = { key, context: contextOf(local) }
    return last.context
  }

  /** @param given the context of the whole body, for items without one. */
  return (items: readonly Json[], now: number, given?: Json): BrokerItems => {
    const read = itemsOf(items, now, (item) =>
      cached((isObject(item) ? own(item, '@context') : undefined) ?? given),
    )
    return { ...read, entities: read.entities.map(withRelationships) }
  }
}

/** Terms of the platform, and those that a context defines itself. Documents elsewhere are not fetched. */
export function contextOf(local: Json | undefined): Context {
  const given = local === undefined ? [] : listOf<Json>(local)
  return compile([platformTerms, ...given]) ?? compile([platformTerms]) ?? coreContext
}

function compile(local: Json): Context | undefined {
  try {
    const context = compileContext(local, () => ({ '@context': {} }))
    return 'expand' in context ? context : undefined
  } catch {
    return undefined
  }
}

/** Entities in a body, and the context of the body. */
export function bodyItems(body: Json): { readonly items: readonly Json[]; readonly context?: Json } {
  const context = isObject(body) ? own(body, '@context') : undefined
  return { items: notifiedItems(body) ?? [], ...(context === undefined ? {} : { context }) }
}

function withRelationships(entity: Entity): Entity {
  const changed = relationships.flatMap((name) => {
    const given = own(entity, name) as Json | undefined
    if (given === undefined) return []
    const instances = listOf<Json>(given)
    const linked = instances.map((one) => (isObject(one) ? linkOf(one) : one))
    return linked.every((one, i) => one === instances[i]) ? [] : [[name, linked] as const]
  })
  return changed.length === 0 ? entity : { ...entity, ...(Object.fromEntries(changed) as object) }
}

function linkOf(instance: JsonObject): JsonObject {
  const { value, ...members } = instance
  const isIds = listOf(value).length > 0 && listOf(value).every((id) => typeof id === 'string')
  if (instance['type'] !== 'Property' || !isIds) return instance
  return { ...members, type: 'Relationship', object: value! }
}
