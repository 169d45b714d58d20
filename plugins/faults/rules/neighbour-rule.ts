/**
 * Bias, gain and drift against the neighbours' estimate. The statistic is the smoothed residual in units of
 * its usual size at this level and hour. When it exceeds its threshold, the shape of the newest residuals
 * names the class: a step, a factor or a ramp.
 */
import { createExtremes, type Extremes, learnExtreme, thresholdOf } from './extremes.ts'
import type { FaultClass } from './finding.ts'
import { addNewest } from './newest-values.ts'
import { createSpread, learnSize, type Spread, type SpreadPlace, sizeAt } from './spread.ts'

const smoothing = 0.15
const quietness = 1.5
const slowest = 0.002
const residualMax = 6
const thresholdMin = 1
const thresholdMax = 5
/**
 * Part by which a threshold exceeds the largest values of the history: the world changes with the seasons.
 */
const margin = 1.05
/** Blocks of residuals by which the shape is judged, and the samples of each. */
const shapeBlocks = 32
const blockSamples = 2
/** Error of a ramp beside that of a step from which the shape is a ramp. */
const rampShare = 1
/** Blocks of the shortest ramp: a step within a block looks like a ramp of two. */
const rampBlocksMin = 4

export interface ResidualState {
  count: number
  /** Slow mean of the residual: a constant error of the estimate. */
  offset: number
  /**
   * Smoothed residuals and weights. A residual counts by the inverse square of its usual size, so evidence
   * from quiet times outlasts a noisy hour.
   */
  evidence: number
  information: number
  above: Extremes
  below: Extremes
  spread: Spread
  /**
   * The newest residuals and the estimates beside them, as means of blocks; the last block may be
   * incomplete.
   */
  residuals: number[]
  estimates: number[]
  filled: number
}

export const createResidualState = (): ResidualState => ({
  count: 0,
  offset: 0,
  evidence: 0,
  information: 1e-9,
  above: createExtremes(),
  below: createExtremes(),
  spread: createSpread(),
  residuals: [],
  estimates: [],
  filled: 0,
})

export interface ResidualPlace extends SpreadPlace {
  readonly floor: number
}

interface ResidualLearning {
  readonly learnsSize: boolean
  readonly learns: boolean
  readonly place: ResidualPlace
}

/** Smoothed residual in units of the threshold. */
export function takeResidual(
  state: ResidualState,
  { value, estimate }: { value: number; estimate: number },
  { learnsSize, learns, place }: ResidualLearning,
): number {
  state.count++
  const size = sizeAt(state.spread, place, place.floor)
  const centred = value - estimate - state.offset
  const bounded = Math.min(residualMax, Math.max(-residualMax, centred / size))
  remember(state, centred, estimate)
  if (learnsSize) {
    state.offset += Math.max(1 / state.count, slowest) * (bounded * size)
    learnSize(state.spread, place, { size: Math.abs(centred), usual: size, floor: place.floor })
  }
  const weight = size ** -quietness
  state.evidence += smoothing * (bounded * size * weight - state.evidence)
  state.information += smoothing * ((weight * size) ** 2 - state.information)
  const statistic = state.evidence / Math.sqrt(state.information)
  return Math.max(sideOf(state.above, statistic, learns), sideOf(state.below, -statistic, learns))
}

function sideOf(extremes: Extremes, value: number, learns: boolean): number {
  const threshold = Math.min(thresholdMax, Math.max(thresholdMin, margin * thresholdOf(extremes)))
  if (learns) learnExtreme(extremes, Math.min(Math.max(0, value), threshold))
  return value / threshold
}

function remember(state: ResidualState, residual: number, estimate: number): void {
  const { residuals, estimates } = state
  if (state.filled === 0 || state.filled === blockSamples) {
    addNewest(residuals, residual, shapeBlocks)
    addNewest(estimates, estimate, shapeBlocks)
    state.filled = 1
    return
  }
  const last = residuals.length - 1
  state.filled++
  residuals[last] = residuals[last]! + (residual - residuals[last]!) / state.filled
  estimates[last] = estimates[last]! + (estimate - estimates[last]!) / state.filled
}

/** Names the shape of the newest residuals: a step within two blocks, or a ramp. */
export function residualShape({ residuals, estimates }: ResidualState): FaultClass {
  const count = residuals.length
  let step = Number.POSITIVE_INFINITY
  let ramp = Number.POSITIVE_INFINITY
  let begin = 0
  for (let at = 1; at < count; at++) {
    const before = residuals.slice(0, at)
    const after = residuals.slice(at)
    const base = squaresAround(before)
    const stepError = base + squaresAround(after)
    if (stepError < step) {
      step = stepError
      begin = at
    }
    if (after.length >= rampBlocksMin) ramp = Math.min(ramp, base + squaresAroundRamp(after, mean(before)))
  }
  if (ramp < rampShare * step) return 'drift'
  return isFactor(residuals.slice(begin), estimates.slice(begin)) ? 'gain' : 'bias'
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

function squaresAround(values: readonly number[]): number {
  const middle = mean(values)
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0)
}

/** Squares around a line that begins at `base` before the first value. */
function squaresAroundRamp(values: readonly number[], base: number): number {
  let products = 0
  let squares = 0
  values.forEach((value, i) => {
    products += (i + 1) * (value - base)
    squares += (i + 1) ** 2
  })
  const slope = products / squares
  return values.reduce((sum, value, i) => sum + (value - base - slope * (i + 1)) ** 2, 0)
}

/** True if a factor explains the residuals much better than an offset. */
function isFactor(residuals: readonly number[], estimates: readonly number[]): boolean {
  const squares = estimates.reduce((sum, value) => sum + value ** 2, 0)
  const factor = residuals.reduce((sum, value, i) => sum + value * estimates[i]!, 0) / squares
  const error = residuals.reduce((sum, value, i) => sum + (value - factor * estimates[i]!) ** 2, 0)
  return error < 0.5 * squaresAround(residuals)
}
