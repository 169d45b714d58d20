/**
 * How changes become requests to another broker. Steps are laid into layers: those of a layer are of one kind and
 * concern different things, so they may travel together; what comes after another for the same entity is in a later layer.
 * So the order per entity is kept with few requests. Pure.
 */
import type { AttributeInstance, Entity } from '#ngsi-ld/entity.ts'

/** Instances by attribute name. */
export type Attributes = ReadonlyMap<string, readonly AttributeInstance[]>

/**
 * - put: values that are current now; the entity comes into being where there is none
 * - past: values that belong into history and never become current where a newer one is
 * - drop: an attribute instance is gone ('' is the default instance)
 * - remove: the entity is gone
 */
export type Step =
  | { readonly kind: 'put' | 'past'; readonly entity: Head; readonly attributes: Attributes }
  | { readonly kind: 'drop'; readonly entity: Head; readonly name: string; readonly dataset: string }
  | { readonly kind: 'remove'; readonly entity: Head }

/** What an entity is beside its attributes. */
export interface Head {
  readonly id: string
  readonly type: Entity['type']
  readonly scope?: Entity['scope']
}

export interface Layer {
  readonly kind: Step['kind']
  /** For put and past at most one per entity. */
  readonly steps: readonly Step[]
}

export function layersOf(steps: Iterable<Step>): readonly Layer[] {
  const layers: { kind: Step['kind']; steps: Map<string, Step> }[] = []
  const last = new Map<string, number>()
  for (const step of steps) {
    const { id } = step.entity
    let at = last.get(id) ?? 0
    for (; at < layers.length; at++) {
      const layer = layers[at]!
      if (layer.kind !== step.kind) continue
      const known = layer.steps.get(keyOf(step))
      const both = known === undefined ? step : joined(known, step)
      if (both === undefined) continue
      layer.steps.set(keyOf(step), both)
      break
    }
    if (at === layers.length) layers.push({ kind: step.kind, steps: new Map([[keyOf(step), step]]) })
    last.set(id, at)
  }
  return layers.map(({ kind, steps: all }) => ({ kind, steps: [...all.values()] }))
}

const keyOf = (step: Step): string =>
  step.kind === 'drop' ? `${step.entity.id} ${step.name} ${step.dataset}` : step.entity.id

/** Two steps of one kind on one entity as one; undefined when the second has to come after the first. */
function joined(one: Step, other: Step): Step | undefined {
  if (one.kind === 'put' && other.kind === 'put') {
    if ([...other.attributes.keys()].some((name) => one.attributes.has(name))) return undefined
    return {
      kind: 'put',
      entity: other.entity,
      attributes: new Map([...one.attributes, ...other.attributes]),
    }
  }
  if (one.kind === 'past' && other.kind === 'past') {
    const attributes = new Map(one.attributes)
    for (const [name, instances] of other.attributes)
      attributes.set(name, [...(attributes.get(name) ?? []), ...instances])
    return { kind: 'past', entity: other.entity, attributes }
  }
  return other
}

/** The body of an entity with some of its attributes; one instance stands without a list. */
export function bodyOf(
  { id, type, scope }: Head,
  attributes: Attributes,
  shape: 'current' | 'temporal',
): Record<string, unknown> {
  const body: Record<string, unknown> = { id, type, ...(scope === undefined ? {} : { scope }) }
  for (const [name, instances] of attributes)
    body[name] = instances.length === 1 && shape === 'current' ? instances[0] : instances
  return body
}
