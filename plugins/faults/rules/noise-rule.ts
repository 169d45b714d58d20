/**
 * Noise: the stream turns at nearly every sample, and by more than it usually does. The statistic is the
 * mean turn of the newest samples without the largest, so a single spike does not count.
 */
import { createExtremes, type Extremes, learnExtreme, thresholdOf } from './extremes.ts'
import { addNewest } from './newest-values.ts'

const windowSamples = 8
const turnMax = 10

/** The least threshold, in usual changes. A stream that hardly ever changes has no larger turns. */
const thresholdMin = 1
/** Part by which the threshold exceeds the largest values of the history. */
const margin = 1.2

/**
 * Share of the threshold at which noise is over. A single large window lasts for its own length anyway; with
 * a lower share it would last until the alarm is a fault.
 */
export const noiseEndShare = 0.85

export interface NoiseState {
  turns: number[]
  extremes: Extremes
}

export const createNoiseState = (): NoiseState => ({ turns: [], extremes: createExtremes() })

/** Mean turn in units of the threshold, and that threshold. */
export function takeNoise(
  state: NoiseState,
  turn: number,
  learns: boolean,
): { noise: number; threshold: number } {
  const { turns, extremes } = state
  addNewest(turns, Math.min(turn, turnMax), windowSamples)
  let sum = 0
  let largest = 0
  for (const one of turns) {
    sum += one
    largest = Math.max(largest, one)
  }
  const statistic = (sum - largest) / (windowSamples - 1)
  const threshold = Math.max(thresholdMin, margin * thresholdOf(extremes))
  if (learns) learnExtreme(extremes, Math.min(statistic, threshold))
  return { noise: statistic / threshold, threshold }
}
