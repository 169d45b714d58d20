/**
 * Noise: the stream turns at nearly every sample, and by more than it usually does. The statistic is the
 * mean turn of the newest samples without the largest, so a single spike does not count.
 */
import { createExtremes, type Extremes, learnExtreme, thresholdOf } from './extremes.ts'

const windowSamples = 8
const turnMax = 10

/** Part by which the threshold exceeds the largest values of the history. */
const margin = 1.2

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
  turns.push(Math.min(turn, turnMax))
  if (turns.length > windowSamples) turns.shift()
  let sum = 0
  let largest = 0
  for (const one of turns) {
    sum += one
    largest = Math.max(largest, one)
  }
  const statistic = (sum - largest) / (windowSamples - 1)
  const threshold = margin * thresholdOf(extremes)
  if (learns) learnExtreme(extremes, Math.min(statistic, threshold))
  return { noise: statistic / threshold, threshold }
}
