/**
 * Linked entities in responses (GS CIM 009, 4.5.23): inline, as members of the relationships that lead to
 * them, or flat, after the selected entities. Only entities that `follow` finds are included; an entity never
 * contains itself, and a flat response contains each entity once.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { attributeNames, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { Projection } from '#ngsi-ld/representation/projection.ts'
import { type Joined, type RenderOptions, renderEntity } from '#ngsi-ld/representation/representation.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { FollowedEntity } from './query-match.ts'

export interface Joining {
  readonly mode: 'inline' | 'flat'
  readonly levels: number
  /** Ids of entities that the client already knows; they are omitted. */
  readonly containedBy: ReadonlySet<string>
  /** Finds an entity by its id and the canonical types that the relationship states for it. */
  readonly follow: (id: string, types: readonly string[]) => FollowedEntity | undefined
}

/** The `pick` and `omit` projections of one entity and its linked entities. */
export interface Projections {
  readonly pick?: Projection | undefined
  readonly omit?: Projection | undefined
}

/** Options for rendering an entity with its members projected; `omit` keeps members that have braces. */
export function projected(options: RenderOptions, { pick, omit }: Projections): RenderOptions {
  return { ...options, pick: pick?.names, omit: omit?.names.difference(new Set(omit.linked.keys())) }
}

/** Renders an entity with its linked entities as members of the relationships. */
export function renderInline(
  source: FollowedEntity,
  options: RenderOptions,
  { levels, containedBy, follow }: Joining,
): JsonObject {
  let joined = 0
  const show = (
    from: FollowedEntity,
    shown: RenderOptions,
    level: number,
    above: ReadonlySet<string>,
  ): JsonObject => {
    const entity = from.entity()
    const times = shown.sysAttrs === true ? from.times() : undefined
    if (level === levels) return renderEntity(entity, times, shown)
    const path = new Set([...above, entity.id])
    const join = (name: string, instance: AttributeInstance): Joined | undefined => {
      const found = new Map<string, Json>()
      for (const id of targetsOf(instance)) {
        const linked = path.has(id) ? undefined : follow(id, typesOf(instance))
        if (linked === undefined) continue
        if (++joined > limits.joinedEntitiesMax.value) throw tooManyJoined()
        const inner = show(linked, linkedOptions(shown, name), level + 1, path)
        if (Object.keys(inner).length > 0) found.set(id, inner)
      }
      return found.size === 0 ? undefined : { found }
    }
    return renderEntity(entity, times, { ...shown, join })
  }
  return show(source, options, 0, containedBy)
}

/** The linked entities of the given entities, nearest first, each with its rendering options. */
export function linkedOf(
  sources: readonly FollowedEntity[],
  options: RenderOptions,
  { levels, containedBy, follow }: Joining,
): readonly { readonly source: FollowedEntity; readonly options: RenderOptions }[] {
  const seen = new Set(containedBy)
  for (const source of sources) seen.add(source.entity().id)
  const linked: { source: FollowedEntity; options: RenderOptions }[] = []
  let level = sources.map((source) => ({ source, options }))
  for (let depth = 0; depth < levels; depth++) {
    const next: typeof level = []
    for (const from of level) {
      for (const { name, id, types } of shownTargets(from.source.entity(), from.options)) {
        const source = seen.has(id) ? undefined : follow(id, types)
        if (source === undefined) continue
        seen.add(id)
        if (seen.size > limits.joinedEntitiesMax.value) throw tooManyJoined()
        next.push({ source, options: linkedOptions(from.options, name) })
      }
    }
    linked.push(...next)
    level = next
  }
  return linked
}

/** The targets of all relationships that are shown. */
const shownTargets = (entity: ReturnType<FollowedEntity['entity']>, options: RenderOptions) =>
  attributeNames(entity)
    .filter((name) => isShown(name, options))
    .flatMap((name) =>
      instancesOf(entity, name).flatMap((instance) =>
        targetsOf(instance).map((id) => ({ name, id, types: typesOf(instance) })),
      ),
    )

/** Target URIs of a Relationship or ListRelationship instance. */
export function targetsOf(instance: AttributeInstance): readonly string[] {
  const targets =
    instance.type === 'Relationship'
      ? listOf(instance.object as Json)
      : instance.type === 'ListRelationship'
        ? listOf(own(instance, 'objectList') as Json).map((item) =>
            isObject(item) ? own(item, 'object') : item,
          )
        : []
  return targets.filter((target) => typeof target === 'string')
}

const typesOf = (instance: AttributeInstance): readonly string[] =>
  listOf(own(instance, 'objectType') ?? []).filter((type) => typeof type === 'string')

function isShown(name: string, { attrs, pick, omit }: RenderOptions): boolean {
  return attrs?.has(name) !== false && pick?.has(name) !== false && omit?.has(name) !== true
}

/** Rendering options for the entities behind a relationship: `attrs` applies to the first level only. */
function linkedOptions(options: RenderOptions, name: string): RenderOptions {
  const projections = {
    pick: options.projections?.pick?.linked.get(name),
    omit: options.projections?.omit?.linked.get(name),
  }
  const { join: _, ...others } = options
  return { ...projected({ ...others, attrs: undefined }, projections), projections }
}

export const tooManyJoined = (): Error =>
  tooComplex(`the response has more than ${limits.joinedEntitiesMax.value} linked entities`)
