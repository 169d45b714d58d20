/**
 * The input of a shipped fault model: the last values of one stream in the scale of that stream, the steps
 * between them, and figures of the window. Training and detection call the same function, so they cannot
 * differ. Pure.
 */
import { type StreamScale, stepNear } from './stream-scale.ts'

/** Values of a window. */
export const windowLength = 48
const recentLength = 12
const gapSlotsMax = 8
const contextLength = 12
/** Values, steps and figures, in this order. */
export const featureCount = windowLength + windowLength - 1 + contextLength

export interface FaultWindow {
  /** The last 48 values that were received, oldest first. */
  readonly values: ArrayLike<number>
  /** The slot of each value: the number of intervals of the stream since any fixed time. */
  readonly slots: ArrayLike<number>
}

/** Writes the features of a window to `target`, from `offset` on. */
export function writeFeatures(
  { values, slots }: FaultWindow,
  scale: StreamScale,
  { target, offset }: { readonly target: Float32Array; readonly offset: number },
): void {
  const steps = new Float64Array(windowLength - 1)
  for (let i = 0; i < windowLength; i++) {
    target[offset + i] = Math.asinh((values[i]! - scale.level) / scale.spread)
  }
  for (let i = 1; i < windowLength; i++) {
    const gap = Math.min(Math.max(slots[i]! - slots[i - 1]!, 1), gapSlotsMax)
    steps[i - 1] = (values[i]! - values[i - 1]!) / (stepNear(scale, values[i - 1]!) * Math.sqrt(gap))
    target[offset + windowLength + i - 1] = Math.asinh(steps[i - 1]!)
  }
  target.set(figuresOf(values, steps, scale), offset + 2 * windowLength - 1)
}

/** Twelve figures of a window. */
function figuresOf(values: ArrayLike<number>, steps: Float64Array, scale: StreamScale): readonly number[] {
  const last = values[windowLength - 1]!
  const count = steps.length
  const newest = steps[count - 1]!
  const before = steps[count - 2]!
  return [
    Math.log(scale.step / scale.spread),
    Math.asinh(Math.max(0, scale.low - last) / scale.step),
    Math.asinh(Math.max(0, last - scale.high) / scale.step),
    Math.min(4, (runAtEnd(values) + 1) / (scale.longestRun + 2)),
    Math.log(runAtEnd(values)),
    equalShare(steps),
    Math.log(0.01 + meanSize(steps, count - 6, count)),
    Math.log(0.01 + meanSize(steps, count - recentLength, count)),
    Math.log(0.01 + meanSize(steps, 0, count - recentLength)),
    turnShare(steps),
    newest * before < 0 ? Math.asinh(Math.min(Math.abs(newest), Math.abs(before))) : 0,
    Math.asinh(extremeSize(steps)),
  ]
}

function runAtEnd(values: ArrayLike<number>): number {
  let run = 1
  while (run < windowLength && values[windowLength - 1 - run] === values[windowLength - 1]) run++
  return run
}

function equalShare(steps: Float64Array): number {
  let equal = 0
  for (let i = steps.length - recentLength; i < steps.length; i++) if (steps[i] === 0) equal++
  return equal / recentLength
}

function meanSize(steps: Float64Array, from: number, to: number): number {
  let sum = 0
  for (let i = from; i < to; i++) sum += Math.min(Math.abs(steps[i]!), 50)
  return sum / (to - from)
}

/** Share of the recent steps that go against the step before. */
function turnShare(steps: Float64Array): number {
  let turns = 0
  for (let i = steps.length - recentLength; i < steps.length; i++) {
    if (steps[i]! * steps[i - 1]! < 0) turns++
  }
  return turns / recentLength
}

/** The largest step before the two newest ones. */
function extremeSize(steps: Float64Array): number {
  let extreme = 0
  for (let i = 0; i < steps.length - 2; i++) extreme = Math.max(extreme, Math.abs(steps[i]!))
  return extreme
}
