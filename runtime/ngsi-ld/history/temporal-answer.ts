/**
 * Parses a temporal entity in a response of another broker [NGSI-LD 4.5.6], normalized and with the system
 * attributes that the broker provides. The result has the form of histories stored here.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { type Attribute, type AttributeInstance, readTypes } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { type Entity, parseAttribute } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'
import { checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { CutEvolution } from './temporal-part.ts'
import type { TimedInstance } from './temporal-query.ts'

const heads: ReadonlySet<string> = new Set([
  ...['id', '@id', 'type', '@type', '@context'],
  ...['createdAt', 'modifiedAt', 'deletedAt', 'expiresAt'],
])

/** @throws ngsi-ld.bad-request-data naming the invalid member */
export function readEvolution(
  json: JsonObject,
  context: Context,
): CutEvolution & { readonly entity: Entity } {
  const id = checkUri(json['id'] ?? json['@id'], 'id')
  const types = json['type'] ?? json['@type']
  if (types === undefined) throw badRequestData('is missing', 'type')
  const type = readTypes(types, 'type', { context }) as string | readonly string[]
  const attributes = new Map<string, readonly TimedInstance[]>()
  for (const [member, value] of Object.entries(json)) {
    if (heads.has(member)) continue
    const name = member === 'scope' ? member : checkName(context.expand(member), member)
    const instances = listOf<Json>(value).filter(isObject)
    attributes.set(
      name,
      instances.map((one) => timed(one, name, context)),
    )
  }
  return {
    id,
    type,
    entity: newest(id, type, attributes),
    created: ms(json['createdAt']),
    modified: ms(json['modifiedAt']),
    deleted: ms(json['deletedAt']),
    attributes,
    cut: new Set(),
  }
}

function timed(json: JsonObject, name: string, context: Context): TimedInstance {
  const { createdAt, modifiedAt, deletedAt, instanceId } = json
  const observedAt = ms(json['observedAt'])
  const modified = ms(modifiedAt) ?? ms(createdAt) ?? observedAt ?? 0
  const deleted = ms(deletedAt)
  return {
    instance: deleted === undefined && name !== 'scope' ? parsed(json, name, context) : bare(json),
    ...(observedAt === undefined ? {} : { observedAt }),
    createdAt: ms(createdAt) ?? modified,
    modifiedAt: modified,
    instanceId: typeof instanceId === 'string' ? instanceId : `urn:ngsi-ld:instance:${name}-${modified}`,
    ...(deleted === undefined ? {} : { deletedAt: deleted }),
  }
}

function parsed(json: JsonObject, name: string, context: Context): AttributeInstance {
  const [instance] = listOf<AttributeInstance>(parseAttribute(json, name, context))
  if (instance === undefined) throw badRequestData('must have at least one instance', name)
  return instance
}

/** Markers of deletions, and scopes, have only a kind and a value. */
function bare(json: JsonObject): AttributeInstance {
  const { type, datasetId, observedAt } = json
  const kind = typeof type === 'string' ? type : 'Property'
  const { member } = kindOf({ type: kind })
  return {
    type: kind,
    [member]: json[member] ?? null,
    ...(typeof datasetId === 'string' ? { datasetId } : {}),
    ...(typeof observedAt === 'string' ? { observedAt } : {}),
  }
}

/** The last instance of each attribute and dataset that was not deleted. */
function newest(
  id: string,
  type: string | readonly string[],
  attributes: ReadonlyMap<string, readonly TimedInstance[]>,
): Entity {
  const members: Record<string, Attribute> = {}
  let scope: readonly string[] | undefined
  for (const [name, list] of attributes) {
    if (name === 'scope') {
      scope = listOf<Json>(list.at(-1)?.instance['value'] ?? []).filter((one) => typeof one === 'string')
      continue
    }
    const last = new Map<string, AttributeInstance>()
    for (const { instance, deletedAt } of list) {
      if (deletedAt === undefined) last.set(instance.datasetId ?? '', instance)
      else last.delete(instance.datasetId ?? '')
    }
    const kept = [...last.values()]
    if (kept.length > 0) members[name] = kept.length === 1 ? kept[0]! : kept
  }
  return { id, type, ...(scope === undefined || scope.length === 0 ? {} : { scope }), ...members }
}

const ms = (value: Json | undefined): number | undefined =>
  typeof value === 'string' ? dateTimeToMs(value) : undefined
