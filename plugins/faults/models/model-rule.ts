/**
 * Turns the probabilities of a fault model into a match, like those of the rules. A class raises an alarm
 * when its odds against `ok` exceed the threshold of the stream. Each alarm raises that threshold, and it
 * sinks slowly without alarms. So a stream on which the model errs gets few alarms. Pure; the state is one
 * JSON object.
 */
import type { FaultClass, Match } from '#plugins/faults/rules/finding.ts'

export interface ModelRuleState {
  /** Thresholds of the classes, as logarithms of odds. */
  thresholds: Record<string, number>
  /** Samples since the last alarm of a class, while the alarm is not over. */
  quiet: Record<string, number>
  /** The class of the alarms that last, when they began, and how many there were in succession. */
  run: { class: string; begin: number; count: number } | null
}

export const createModelRuleState = (): ModelRuleState => ({ thresholds: {}, quiet: {}, run: null })

/** The least logarithm of odds of each class, of which the model is sure. */
const thresholdMin: Readonly<Record<string, number>> = { bias: 3, 'low-variance': 3 }
const thresholdUsual = 2
const thresholdMax = 12
/** One false alarm in 4,000 samples keeps a threshold where it is. */
const raisedBy = 4
const loweredBy = 0.001
/** An alarm is over after this many samples without another one. */
const sameAlarmSamples = 24
/** Alarms in succession that make these classes definite: no healthy sensor shows them. */
const definiteAfter = 3
const definiteClasses: ReadonlySet<string> = new Set(['stuck', 'low-variance'])

export interface ModelSample {
  /** observedAt in ms. */
  readonly time: number
  /** The classes of the model in the order of its outputs; the first is `ok`. */
  readonly classes: readonly string[]
  readonly probabilities: ArrayLike<number>
  /** Whether equal values are usual on the stream: then the model cannot call it stuck. */
  readonly isCoarse: boolean
}

export function takeModel(
  state: ModelRuleState,
  { time, classes, probabilities, isCoarse }: ModelSample,
): Match | undefined {
  const ok = Math.max(probabilities[0]!, Number.EPSILON)
  let best: { readonly class: string; readonly odds: number } | undefined
  classes.forEach((name, i) => {
    if (i === 0 || (isCoarse && definiteClasses.has(name))) return
    const odds = Math.log(Math.max(probabilities[i]!, Number.EPSILON) / ok)
    if (isAlarm(state, name, odds) && odds > (best?.odds ?? Number.NEGATIVE_INFINITY))
      best = { class: name, odds }
  })
  if (best === undefined) {
    state.run = null
    return undefined
  }
  const { run } = state
  state.run =
    run?.class === best.class
      ? { ...run, count: run.count + 1 }
      : { class: best.class, begin: time, count: 1 }
  const isDefinite = definiteClasses.has(best.class) && state.run.count >= definiteAfter
  return {
    class: best.class as FaultClass,
    kind: isDefinite ? 'definite' : 'anomaly',
    begin: state.run.begin,
    likelihood: 1 / (1 + Math.exp(best.odds)),
  }
}

/** Compares the odds of a class with its threshold. Once an alarm is over, the threshold rises. */
function isAlarm({ thresholds, quiet }: ModelRuleState, name: string, odds: number): boolean {
  const least = thresholdMin[name] ?? thresholdUsual
  const threshold = thresholds[name] ?? least
  const isAbove = odds >= threshold
  const since = quiet[name]
  if (isAbove) quiet[name] = 0
  else if (since === undefined) thresholds[name] = Math.max(least, threshold - loweredBy)
  else if (since + 1 < sameAlarmSamples) quiet[name] = since + 1
  else {
    delete quiet[name]
    thresholds[name] = Math.min(thresholdMax, threshold + raisedBy)
  }
  return isAbove
}
