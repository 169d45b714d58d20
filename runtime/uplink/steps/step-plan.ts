/**
 * How changes become requests to another broker. Steps are laid into layers: those of a layer are of one kind and
 * concern different things, so they may travel together; what comes after another for the same entity is in a later layer.
 * So the order per entity is kept with few requests. Pure.
 */

import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'

/** Instances by attribute name. */
export type Attributes = ReadonlyMap<string, readonly AttributeInstance[]>

/** How what is sent came to be here, which the other broker has to know. */
export interface Provenance {
  /** The chain of other brokers that it came through; left out where it began here. */
  readonly heard?: string | undefined
}

/**
 * - put: values that are current now; the entity comes into being where there is none
 * - past: values that belong into history and never become current where a newer one is
 * - drop: an attribute instance is gone ('' is the default instance)
 * - remove: the entity is gone, as far as it is what was sent from here
 * - erase: the history of an attribute is gone, of one instance or of all ('*'); what is current stays
 */
export type Step = Provenance &
  (
    | {
        readonly kind: 'put' | 'past'
        readonly entity: Head
        readonly attributes: Attributes
        /** Of what is put: observations that come before those of `attributes`. */
        readonly before?: Attributes
        /** Of `attributes`, one that follows from the time of the others: its last value says it all. */
        readonly mirror?: string
      }
    | (DeletionTimes & {
        readonly kind: 'drop'
        readonly entity: Head
        readonly name: string
        readonly dataset: string
      })
    | {
        readonly kind: 'erase'
        readonly entity: Head
        readonly name: string
        readonly dataset: string
      }
    /** `had` are the attribute instances it had here, as `name` or `name datasetId`. */
    | (DeletionTimes & { readonly kind: 'remove'; readonly entity: Head; readonly had: ReadonlySet<string> })
  )

/** What is to go, where others may have written it since over there. */
export interface DeletionTimes {
  /** When (commit time, ms) it went here. */
  readonly at?: number | undefined
  /** The latest time (ms) at which any of it was observed: of a device whose clock is ahead that is later. */
  readonly seen?: number | undefined
}

/** What an entity is beside its attributes. */
export interface Head {
  readonly id: string
  readonly type: Entity['type']
  readonly scope?: Entity['scope']
  /** The types are all that the entity has: those that it lost are to go. */
  readonly statesTypes?: true
}

export interface Layer extends Provenance {
  readonly kind: Step['kind']
  /** For put and past at most one per entity. */
  readonly steps: readonly Step[]
}

export function layersOf(steps: Iterable<Step>): readonly Layer[] {
  const layers: (Provenance & { kind: Step['kind']; steps: Map<string, Step> })[] = []
  const last = new Map<string, number>()
  for (const step of steps) {
    const { id } = step.entity
    let at = last.get(id) ?? 0
    for (; at < layers.length; at++) {
      const layer = layers[at]!
      if (layer.kind !== step.kind || layer.heard !== step.heard) continue
      const known = layer.steps.get(keyOf(step))
      const both = known === undefined ? step : merged(known, step)
      if (both === undefined) continue
      layer.steps.set(keyOf(step), both)
      break
    }
    if (at === layers.length) {
      const { kind, heard } = step
      layers.push({ kind, heard, steps: new Map([[keyOf(step), step]]) })
    }
    last.set(id, at)
  }
  return layers.flatMap(({ steps: all, ...layer }) => spread({ ...layer, steps: [...all.values()] }))
}

/**
 * What comes before what is put is told before it, by the fewest requests: where many entities have a few values they are
 * put one round after the other, where a few have many these are told as past.
 */
function spread(layer: Layer): readonly Layer[] {
  const depths = layer.steps.map(depthOf)
  const most = depthWithFewestRequests(depths)
  const isDeep = (i: number): boolean => depths[i]! > most
  const past = layer.steps.flatMap((step, i): Step[] => {
    if (step.kind !== 'put' || !isDeep(i)) return []
    const { before, mirror: _, ...rest } = step
    return [{ ...rest, kind: 'past', attributes: before! }]
  })
  const rounds = Array.from({ length: most }, (_, round) =>
    layer.steps.flatMap((step, i) => (isDeep(i) ? [] : roundOf(step, round))),
  )
  return [
    ...(past.length === 0 ? [] : [{ ...layer, kind: 'past' as const, steps: past }]),
    ...rounds.map((steps) => ({ ...layer, steps })),
    layer,
  ]
}

/** How many values of one attribute come before that which is put. */
const depthOf = (step: Step): number =>
  step.kind === 'put' ? Math.max(0, ...[...(step.before?.values() ?? [])].map(({ length }) => length)) : 0

/** Each deeper entity takes a request of its own, each round of the others takes one for all. */
function depthWithFewestRequests(depths: readonly number[]): number {
  const ascending = depths.toSorted((a, b) => a - b)
  let [most, fewest] = [0, ascending.filter((depth) => depth > 0).length]
  for (const [i, depth] of ascending.entries()) {
    const requests = depth + ascending.length - 1 - i
    if (requests < fewest) [most, fewest] = [depth, requests]
  }
  return most
}

/** The values of a step that come in a round of those before it. */
function roundOf(step: Step, round: number): readonly Step[] {
  if (step.kind !== 'put' || step.before === undefined) return []
  const { before, mirror: _, ...rest } = step
  const attributes = new Map<string, readonly AttributeInstance[]>()
  for (const [name, instances] of before) {
    const one = instances[round]
    if (one !== undefined) attributes.set(name, [one])
  }
  return attributes.size === 0 ? [] : [{ ...rest, attributes }]
}

const keyOf = (step: Step): string =>
  step.kind === 'drop' || step.kind === 'erase'
    ? `${step.entity.id} ${step.name} ${step.dataset}`
    : step.entity.id

/** Two steps of one kind on one entity as one; undefined when the second has to come after the first. */
function merged(one: Step, other: Step): Step | undefined {
  if (one.kind === 'put' && other.kind === 'put') {
    const before = new Map(one.before)
    const attributes = new Map(one.attributes)
    for (const [name, instances] of other.attributes) {
      if (name === other.mirror) {
        attributes.set(name, instances)
        continue
      }
      const rest = (attributes.get(name) ?? []).filter((known) => {
        const next = instances.find(({ datasetId }) => datasetId === known.datasetId)
        if (next !== undefined) before.set(name, [...(before.get(name) ?? []), known])
        return next === undefined
      })
      const displaced = before.get(name)?.slice(one.before?.get(name)?.length ?? 0) ?? []
      if (!displaced.every((known) => isBefore(known, instances))) return undefined
      attributes.set(name, [...rest, ...instances])
    }
    const entity = { ...one.entity, ...other.entity }
    return { ...other, entity, attributes, ...(before.size === 0 ? {} : { before }) }
  }
  if (one.kind === 'past' && other.kind === 'past') {
    const attributes = new Map(one.attributes)
    for (const [name, instances] of other.attributes)
      attributes.set(name, [...(attributes.get(name) ?? []), ...instances])
    return { ...other, attributes }
  }
  // Of each life that ended all it had is to go.
  if (one.kind === 'remove' && other.kind === 'remove') return { ...other, had: one.had.union(other.had) }
  // What went twice is told in any order, and went when it went last.
  if (one.kind === 'drop' && other.kind === 'drop')
    return (one.at ?? 0) > (other.at ?? Number.POSITIVE_INFINITY) ? one : other
  return other
}

/** Whether both were observed, this one not after the other of its dataset. */
function isBefore(
  { datasetId, observedAt }: AttributeInstance,
  others: readonly AttributeInstance[],
): boolean {
  const next = others.find((one) => one.datasetId === datasetId)?.observedAt
  return observedAt !== undefined && next !== undefined && Date.parse(observedAt) <= Date.parse(next)
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

/** How many instances a step tells. */
export const instanceCount = (step: Step): number =>
  'attributes' in step ? [...step.attributes.values()].reduce((sum, all) => sum + all.length, 0) : 1

/** Whether all that a step tells was observed. */
export const isObserved = (step: Step & { kind: 'put' | 'past' }): boolean => {
  const attributes = withoutMirror(step)
  return (
    attributes.size > 0 &&
    [...attributes.values()].every((all) => all.every(({ observedAt }) => observedAt !== undefined))
  )
}

/** What a step tells, without the attribute that only says when. */
export const withoutMirror = ({ attributes, mirror }: Step & { kind: 'put' | 'past' }): Attributes =>
  new Map([...attributes].filter(([name]) => name !== mirror))
