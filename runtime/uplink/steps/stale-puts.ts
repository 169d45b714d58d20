/**
 * Turns a put that waited long into past values where its attributes were deleted meanwhile. Otherwise the
 * centre would store them long after their deletion, and they would look like later writes of other clients.
 * Pure except for lookups.
 */

import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { instancesOf } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { pastHead, type ScopeLookups } from './deletion-steps.ts'
import { type Layer, layersOf, type Step } from './step-plan.ts'

/** The layers that replace a put; undefined if none of its attributes was deleted. */
export function splitStale(layer: Layer, lookups: ScopeLookups): readonly Layer[] | undefined {
  const split = layer.steps.map((step) => splitStep(step as Put, lookups))
  const isSame = split.every((some, i) => some.length === 1 && some[0] === layer.steps[i])
  return isSame ? undefined : layersOf(split.flat().map(withoutBefore))
}

/** Earlier values are in layers of their own. */
const withoutBefore = ({ before: _, ...step }: Put | Past): Step => step

type Put = Step & { readonly kind: 'put' }
type Past = Step & { readonly kind: 'past' }

function splitStep(step: Put, lookups: ScopeLookups): readonly (Put | Past)[] {
  const { id, type } = step.entity
  const found = lookups.entity(id)?.entity()
  // An entity only ever gains types; if one is missing, another entity has the same id.
  const now =
    found !== undefined && listOf(type).every((one) => listOf(found.type).includes(one)) ? found : undefined
  // Entities that never existed here, such as gaps, cannot have been deleted.
  if (now === undefined && found === undefined && lookups.tombstonesAfter(id, 0).length === 0) return [step]
  const past = new Map<string, readonly AttributeInstance[]>()
  const current = new Map<string, readonly AttributeInstance[]>()
  for (const [name, instances] of step.attributes) {
    const datasets = new Set(now === undefined ? [] : instancesOf(now, name).map((one) => one.datasetId))
    const { there, gone } = Object.groupBy(instances, ({ datasetId }) =>
      datasets.has(datasetId) ? 'there' : 'gone',
    )
    if (there !== undefined) current.set(name, there)
    if (gone !== undefined) past.set(name, gone)
  }
  if (now !== undefined && past.size === 0) return [step]
  const entity = pastHead(step.entity, lookups)
  return [
    ...(past.size === 0 ? [] : [{ ...step, kind: 'past' as const, entity, attributes: past }]),
    ...(now === undefined ? [] : [{ ...step, attributes: current }]),
  ]
}
