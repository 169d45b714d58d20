/**
 * What is to be done of a step that was refused before, now that time has passed: what it told as current is past, and what
 * is current now is told instead; what has ended meanwhile, or came again, is left alone. Pure.
 */
import { type Entity, instancesOf } from '#ngsi-ld/entity.ts'
import type { Step } from './plan.ts'

export function anew(step: Step, now: Entity | undefined): readonly Step[] {
  if (step.kind === 'remove') return now === undefined ? [step] : []
  if (now === undefined) return []
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

/** A step as text and back. */
export const printStep = (step: Step): string =>
  JSON.stringify('attributes' in step ? { ...step, attributes: Object.fromEntries(step.attributes) } : step)

export function readStep(text: string): Step {
  const step = JSON.parse(text) as Step
  return 'attributes' in step ? { ...step, attributes: new Map(Object.entries(step.attributes)) } : step
}
