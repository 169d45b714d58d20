/**
 * Plans requests from changes. Steps are grouped into layers: the steps of a layer have one kind and
 * different subjects, so they can share requests; a later step for the same entity is in a later layer. This
 * keeps the order per entity with few requests. Pure.
 */

import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'

/** Instances by attribute name. */
export type Attributes = ReadonlyMap<string, readonly AttributeInstance[]>

/** The origin of a change, which the centre needs. */
export interface Provenance {
  /** The Via chain of the change; absent if it originated here. */
  readonly via?: string | undefined
}

/**
 * - put: values that are current now; the entity is created if missing
 * - past: values for the history, which never replace a newer current value
 * - drop: an attribute instance was deleted ('' is the default instance)
 * - remove: the entity was deleted; only what this gateway sent is deleted at the centre
 * - erase: the history of an attribute was erased, of one instance or of all ('*'); current values stay
 */
export type Step = Provenance &
  (
    | {
        readonly kind: 'put' | 'past'
        readonly entity: Head
        readonly attributes: Attributes
        /** Observations that precede those of `attributes`, for a put. */
        readonly before?: Attributes
        /** An attribute of `attributes` derived from the time of the others; only its last value matters. */
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
    /** `had` lists the attribute instances it had here, as `name` or `name datasetId`. */
    | (DeletionTimes & { readonly kind: 'remove'; readonly entity: Head; readonly had: ReadonlySet<string> })
  )

/** Times of a deletion, to recognize later writes of other clients at the centre. */
export interface DeletionTimes {
  /** Commit time (ms) of the deletion here. */
  readonly at?: number | undefined
  /**
   * The latest observation time (ms) among the deleted values; later than `at` if the device's clock is
   * ahead.
   */
  readonly seen?: number | undefined
}

/** An entity without its attributes. */
export interface Head {
  readonly id: string
  readonly type: Entity['type']
  readonly scope?: Entity['scope']
  /** Whether these are all types of the entity, so that the centre removes others. */
  readonly statesTypes?: true
}

export interface Layer extends Provenance {
  readonly kind: Step['kind']
  /** For put and past, at most one step per entity. */
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
      if (layer.kind !== step.kind || layer.via !== step.via) continue
      const known = layer.steps.get(keyOf(step))
      const both = known === undefined ? step : merged(known, step)
      if (both === undefined) continue
      layer.steps.set(keyOf(step), both)
      break
    }
    if (at === layers.length) {
      const { kind, via } = step
      layers.push({ kind, via, steps: new Map([[keyOf(step), step]]) })
    }
    last.set(id, at)
  }
  return layers.flatMap(({ steps: all, ...layer }) => spread({ ...layer, steps: [...all.values()] }))
}

/**
 * Sends earlier values of a put before it with the fewest requests. Many entities with a few values are put
 * in rounds; for few entities with many values, these are sent as past.
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

/** The largest number of earlier values of one attribute. */
const depthOf = (step: Step): number =>
  step.kind === 'put' ? Math.max(0, ...[...(step.before?.values() ?? [])].map(({ length }) => length)) : 0

/** Each entity above the depth needs a request of its own; each round below it needs one for all. */
function depthWithFewestRequests(depths: readonly number[]): number {
  const ascending = depths.toSorted((a, b) => a - b)
  let most = 0
  let fewest = ascending.filter((depth) => depth > 0).length
  for (const [i, depth] of ascending.entries()) {
    const requests = depth + ascending.length - 1 - i
    if (requests < fewest) [most, fewest] = [depth, requests]
  }
  return most
}

/** The values that a step contributes to a round. */
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

type PutStep = Step & { kind: 'put' | 'past' }

/** Merges two steps of one kind for one entity; undefined if the second must be sent after the first. */
function merged(one: Step, other: Step): Step | undefined {
  if (one.kind === 'put' && other.kind === 'put') return mergedPuts(one, other)
  if (one.kind === 'past' && other.kind === 'past') {
    const attributes = new Map(one.attributes)
    for (const [name, instances] of other.attributes)
      attributes.set(name, [...(attributes.get(name) ?? []), ...instances])
    return { ...other, attributes }
  }
  // The attributes of every ended life are deleted.
  if (one.kind === 'remove' && other.kind === 'remove') return { ...other, had: one.had.union(other.had) }
  // Repeated deletions may arrive in any order; the latest one counts.
  if (one.kind === 'drop' && other.kind === 'drop')
    return (one.at ?? 0) > (other.at ?? Number.POSITIVE_INFINITY) ? one : other
  return other
}

function mergedPuts(one: PutStep, other: PutStep): PutStep | undefined {
  const before = new Map(one.before)
  const attributes = new Map(one.attributes)
  for (const [name, instances] of other.attributes) {
    if (name === other.mirror) {
      attributes.set(name, instances)
      continue
    }
    const known = attributes.get(name) ?? []
    const isReplaced = ({ datasetId }: AttributeInstance): boolean =>
      instances.some((next) => next.datasetId === datasetId)
    const displaced = known.filter(isReplaced)
    if (!displaced.every((past) => isBefore(past, instances))) return undefined
    if (displaced.length > 0) before.set(name, [...(before.get(name) ?? []), ...displaced])
    attributes.set(name, [...known.filter((past) => !isReplaced(past)), ...instances])
  }
  const entity = { ...one.entity, ...other.entity }
  return { ...other, entity, attributes, ...(before.size === 0 ? {} : { before }) }
}

/** Whether both were observed, and the first not after the second of the same dataset. */
function isBefore(
  { datasetId, observedAt }: AttributeInstance,
  others: readonly AttributeInstance[],
): boolean {
  const next = others.find((one) => one.datasetId === datasetId)?.observedAt
  return observedAt !== undefined && next !== undefined && Date.parse(observedAt) <= Date.parse(next)
}

/** The request body of an entity; a single current instance is not wrapped in a list. */
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

/** The number of attribute instances in a step. */
export const instanceCount = (step: Step): number =>
  'attributes' in step ? [...step.attributes.values()].reduce((sum, all) => sum + all.length, 0) : 1

/** Whether all attributes of a step are observations. */
export const isObserved = (step: Step & { kind: 'put' | 'past' }): boolean => {
  const attributes = withoutMirror(step)
  return (
    attributes.size > 0 &&
    [...attributes.values()].every((all) => all.every(({ observedAt }) => observedAt !== undefined))
  )
}

/** The attributes of a step without the mirror attribute. */
export const withoutMirror = ({ attributes, mirror }: Step & { kind: 'put' | 'past' }): Attributes =>
  new Map([...attributes].filter(([name]) => name !== mirror))
