/**
 * Step: a change that stays. The statistic sums the unexpected changes since the step, in units of the
 * usual change. It is the least of these sums while later samples confirm the step. Without neighbours it
 * is the only sign of a bias; it cannot exclude that the environment stepped.
 */
import { createExtremes, type Extremes, learnExtreme, thresholdOf } from './extremes.ts'
import type { Change } from './movement.ts'
import { addNewest } from './newest-values.ts'

/** Samples that confirm a step. */
const confirming = 7
/** The least height of a step in usual changes. A stream that hardly ever changes has no larger ones. */
const heightMin = 3

export interface StepState {
  surprises: number[]
  sizes: number[]
  rises: Extremes
  falls: Extremes
}

export const createStepState = (): StepState => ({
  surprises: [],
  sizes: [],
  rises: createExtremes(),
  falls: createExtremes(),
})

/** Height of the step that is confirmed now, in units of the threshold. */
export function takeStep(state: StepState, { surprise, size }: Change, learns: boolean): number {
  const { surprises, sizes } = state
  const isConfirmed = surprises.length === confirming
  addNewest(surprises, surprise, confirming)
  addNewest(sizes, size, confirming)
  if (!isConfirmed) return 0
  const sign = Math.sign(surprises[0]!)
  let sum = 0
  let least = Number.POSITIVE_INFINITY
  for (const one of surprises) {
    sum += one
    least = Math.min(least, sign * sum)
  }
  const statistic = Math.max(0, least / sizes[0]!)
  const extremes = sign > 0 ? state.rises : state.falls
  const threshold = Math.max(heightMin, thresholdOf(extremes))
  if (learns) {
    learnExtreme(extremes, Math.min(statistic, threshold))
    learnExtreme(sign > 0 ? state.falls : state.rises, 0)
  }
  return statistic / threshold
}

export function interruptStep(state: StepState): void {
  state.surprises.length = 0
  state.sizes.length = 0
}
