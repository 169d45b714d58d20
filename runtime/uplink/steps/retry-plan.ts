/**
 * Plans the retry of a refused step after some time. Its current values are sent as past, followed by the
 * values that are current now. Steps for an entity deleted meanwhile, and deletions of something re-created,
 * are skipped. Pure.
 */
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { conflict } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Step } from './step-plan.ts'

export function retrySteps(step: Step, now: Entity | undefined): readonly Step[] {
  if (step.kind === 'remove') return now === undefined ? [step] : []
  // A repeated erasure would also remove later observations.
  if (now === undefined || step.kind === 'erase') return []
  if (step.kind === 'drop') {
    const isThere = instancesOf(now, step.name).some(({ datasetId = '' }) => datasetId === step.dataset)
    return isThere ? [] : [step]
  }
  const there = [...step.attributes.keys()]
    .map((name) => [name, instancesOf(now, name)] as const)
    .filter(([, all]) => all.length > 0)
  const past = [...step.attributes].filter(([name]) => there.some(([one]) => one === name))
  const steps: Step[] = []
  if (past.length > 0) steps.push({ ...step, kind: 'past', attributes: new Map(past) })
  if (step.kind === 'put') steps.push({ ...step, attributes: new Map(there) })
  return steps
}

/** Serializes a step. */
export function serializeStep(step: Step): string {
  if ('attributes' in step)
    return JSON.stringify({ ...step, attributes: Object.fromEntries(step.attributes) })
  return JSON.stringify(step.kind === 'remove' ? { ...step, had: [...step.had] } : step)
}

/**
 * Parses a step.
 * @throws GatewayError ngsi-ld.conflict for a deletion stored without the entity's own attributes
 */
export function parseStep(text: string): Step {
  const step = JSON.parse(text) as Step
  if ('attributes' in step) {
    const { before: _, ...rest } = step
    return { ...rest, attributes: new Map(Object.entries(step.attributes)) }
  }
  if (step.kind !== 'remove') return step
  const had: unknown = step.had
  if (!Array.isArray(had))
    throw conflict(
      `the own attributes of ${step.entity.id} were not stored: delete the entity at the centre, then drop this dead letter`,
    )
  return { ...step, had: new Set(had as string[]) }
}
