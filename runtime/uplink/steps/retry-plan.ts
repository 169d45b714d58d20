/**
 * What is to be done of a step that was refused before, now that time has passed: what it told as current is past, and what
 * is current now is told instead; what has ended meanwhile, or came again, is left alone. Pure.
 */
import { GatewayError } from '#base/register/errors.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { Step } from './step-plan.ts'

export function retrySteps(step: Step, now: Entity | undefined): readonly Step[] {
  if (step.kind === 'remove') return now === undefined ? [step] : []
  // What was observed since then would go with it.
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

/** A step as text. */
export function serializeStep(step: Step): string {
  if ('attributes' in step)
    return JSON.stringify({ ...step, attributes: Object.fromEntries(step.attributes) })
  return JSON.stringify(step.kind === 'remove' ? { ...step, had: [...step.had] } : step)
}

/**
 * A step from its text.
 * @throws GatewayError ngsi-ld.conflict for a deletion that was kept without what the entity had here
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
    throw new GatewayError(
      'ngsi-ld.conflict',
      `what ${step.entity.id} had here was not kept: delete it over there, and drop this`,
    )
  return { ...step, had: new Set(had as string[]) }
}
