/**
 * What waited long to be told as current, and went meanwhile, is told as past: so nothing of it is written over there long after it
 * went here, where it could not be told from what others wrote since. Pure but for looking up what is.
 */

import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { instancesOf } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { pastHead, type ScopeLookups } from './deletion-steps.ts'
import { type Layer, layersOf, type Step } from './step-plan.ts'

/** The layers to be sent instead of one that puts; undefined where nothing of that went. */
export function splitStale(layer: Layer, lookups: ScopeLookups): readonly Layer[] | undefined {
  const split = layer.steps.map((step) => splitStep(step as Put, lookups))
  const isSame = split.every((some, i) => some.length === 1 && some[0] === layer.steps[i])
  return isSame ? undefined : layersOf(split.flat().map(withoutBefore))
}

/** What came before is in layers of its own. */
const withoutBefore = ({ before: _, ...step }: Put | Past): Step => step

type Put = Step & { readonly kind: 'put' }
type Past = Step & { readonly kind: 'past' }

function splitStep(step: Put, lookups: ScopeLookups): readonly (Put | Past)[] {
  const { id, type } = step.entity
  const found = lookups.entity(id)?.entity()
  // Types only come to what there is: who lacks one is another under the same id.
  const now =
    found !== undefined && listOf(type).every((one) => listOf(found.type).includes(one)) ? found : undefined
  // What was never here, as gaps are, did not go.
  if (now === undefined && found === undefined && lookups.gravesAfter(id, 0).length === 0) return [step]
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
