/**
 * Distributed discovery of types and attributes (GS CIM 009, 4.3.6 and 5.7.5 to 5.7.10): merges the local
 * inventory with those that sources report, limited to their claims. Entity counts are summed, so an entity
 * held twice counts twice; the standard defines these counts as estimates.
 */
import type { AttributeUse, Inventory, TypeUse } from '#broker/entities/inventory.ts'
import type { Json } from '#contract'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { type Interest, isOfInterest, namesOf } from '#ngsi-ld/federation/registration-match.ts'
import { offers, type SourceOperation } from '#ngsi-ld/federation/registration-operations.ts'
import { isObject, type JsonObject, listOf, textsOf } from '#ngsi-ld/values/json.ts'
import type { Requester, Sources, Warning } from './sources.ts'
import { invalidAnswer, warningsOf } from './warnings.ts'

/** A discovery operation with its interest; names are full IRIs. */
export interface ClientInventoryQuery {
  readonly operation: SourceOperation
  readonly interest: Interest
  /** Path and query for sources, with names in the context of the request. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly context: Context
}

interface SourceInventory {
  readonly types: readonly TypeUse[]
  readonly attributes: readonly AttributeUse[]
}

export async function gatherInventory(
  { sources, requester, inventory }: { sources: Sources; requester: Requester; inventory: Inventory },
  registrations: readonly Registration[],
  { operation, interest, path, headers, context }: ClientInventoryQuery,
): Promise<{ inventory: Inventory; warnings: readonly Warning[] }> {
  const warnings: Warning[] = []
  const concerned = registrations.filter(
    (registration) =>
      offers(registration, operation) &&
      registration.information.some((info) => isOfInterest(interest, info)),
  )
  const inventories = await Promise.all(
    concerned.map(async (registration): Promise<SourceInventory> => {
      const answer = await sources.send(requester, registration, {
        method: 'GET',
        path,
        headers,
        contexts: [context],
      })
      warnings.push(...warningsOf(registration, answer))
      if ('failure' in answer || answer.status !== 200) return { types: [], attributes: [] }
      try {
        return claimed(registration, readInventory(JSON.parse(answer.text) as Json, answer.context))
      } catch (error) {
        warnings.push(invalidAnswer(registration, error))
        return { types: [], attributes: [] }
      }
    }),
  )
  return {
    warnings,
    inventory: Object.freeze({
      types: () => mergeTypes([...inventory.types(), ...inventories.flatMap(({ types }) => types)]),
      attributes: () =>
        mergeAttributes([...inventory.attributes(), ...inventories.flatMap(({ attributes }) => attributes)]),
    }),
  }
}

/** Reads any discovery response: a list of names, a list with details, or the details of one. */
function readInventory(body: Json, { expand }: Context): SourceInventory {
  const types: TypeUse[] = []
  const attributes: AttributeUse[] = []
  for (const item of listOf<Json>(body)) {
    if (!isObject(item)) continue
    const { typeList, attributeList, typeName, attributeName } = item
    for (const name of textsIn(typeList)) types.push({ name: expand(name), entities: 0, attributes: [] })
    for (const name of textsIn(attributeList)) attributes.push({ ...bare, name: expand(name) })
    if (typeof typeName === 'string') types.push(typeOf(item, typeName, expand))
    else if (typeof attributeName === 'string') attributes.push(attributeOf(item, attributeName, expand))
  }
  return { types, attributes }
}

const bare = { kinds: [], types: [], entities: 0 }

function typeOf(item: JsonObject, typeName: string, expand: Context['expand']): TypeUse {
  const { attributeNames, attributeDetails, entityCount } = item
  const detailed = listOf<Json>(attributeDetails ?? [])
    .filter(isObject)
    .flatMap((one) => {
      const { attributeName } = one
      return typeof attributeName === 'string' ? [attributeOf(one, attributeName, expand)] : []
    })
  const named = textsIn(attributeNames).map((name) => ({ ...bare, name: expand(name) }))
  return { name: expand(typeName), entities: countIn(entityCount), attributes: [...detailed, ...named] }
}

const attributeOf = (item: JsonObject, name: string, expand: Context['expand']): AttributeUse => ({
  name: expand(name),
  kinds: textsIn(item['attributeTypes']),
  types: textsIn(item['typeNames']).map((name) => expand(name)),
  entities: countIn(item['attributeCount']),
})

const countIn = (value: Json | undefined): number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : 0

const textsIn = (value: Json | undefined): readonly string[] => (value === undefined ? [] : textsOf(value))

/** Limits a source's inventory to its registered types and attributes. */
function claimed({ information }: Registration, { types, attributes }: SourceInventory): SourceInventory {
  const namedTypes = information.map(({ entities }) => entities?.flatMap((entity) => entity.types))
  const ofType = (type: string): boolean =>
    namedTypes.some((names) => names === undefined || names.includes(type))
  const namesFor = (type: string | undefined): ReadonlySet<string> | undefined => {
    const infos = information.filter(
      ({ entities }) =>
        type === undefined ||
        entities === undefined ||
        entities.some((entity) => entity.types.includes(type)),
    )
    const named = infos.map(namesOf)
    return named.includes(undefined) ? undefined : new Set(named.flatMap((names) => [...names!]))
  }
  const within = (uses: readonly AttributeUse[], type?: string): AttributeUse[] => {
    const names = namesFor(type)
    return uses
      .filter(({ name }) => names?.has(name) ?? true)
      .map((use) => ({ ...use, types: use.types.filter(ofType) }))
  }
  return {
    types: types
      .filter(({ name }) => ofType(name))
      .map((type) => ({ ...type, attributes: within(type.attributes, type.name) })),
    attributes: within(attributes),
  }
}

function mergeTypes(uses: readonly TypeUse[]): TypeUse[] {
  return byName(uses).map(([name, same]) => ({
    name,
    entities: same.reduce((sum, { entities }) => sum + entities, 0),
    attributes: mergeAttributes(same.flatMap(({ attributes }) => attributes)),
  }))
}

function mergeAttributes(uses: readonly AttributeUse[]): AttributeUse[] {
  return byName(uses).map(([name, same]) => ({
    name,
    kinds: [...new Set(same.flatMap(({ kinds }) => kinds))].sort(),
    types: [...new Set(same.flatMap(({ types }) => types))].sort(),
    entities: same.reduce((sum, { entities }) => sum + entities, 0),
  }))
}

function byName<Use extends { readonly name: string }>(uses: readonly Use[]): [string, Use[]][] {
  const groups = new Map<string, Use[]>()
  for (const use of uses) groups.set(use.name, [...(groups.get(use.name) ?? []), use])
  return [...groups].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
}
