/**
 * The anomaly detectors of one stream, value by value: each detector's score becomes a probability given the
 * earlier ones, the logarithms are summed, and the sum is calibrated again. Nothing of the future is used.
 * It holds no clock and does no I/O: the caller maps observations to slots, and replays the history after a
 * restart. Time is constant by sample.
 */
import { createAlarmDiscipline } from './alarm-discipline.ts'
import { createDirichletStates } from './dirichlet-states.ts'
import { createRobustScale } from './robust-scale.ts'
import { createShift } from './shift.ts'
import { createTailProbability } from './tail-probability.ts'

export type Approach = 'seasonal-arima' | 'dirichlet-process'

export interface ChainOptions {
  /** Slots of a period, if it is known; else it is detected. */
  readonly periodSlots?: number
  /** Omitted: chosen by period and history. */
  readonly approach?: Approach
  /** Compares the latest values with all of the history; costs more time and memory. */
  readonly withNeighbourLibrary?: boolean
}

export interface AnomalyJudgement {
  /** Probability of values as abnormal as this, given earlier ones: small is abnormal. */
  readonly likelihood: number
  /** -log10 of the likelihood. */
  readonly score: number
  /** True once for an abnormal condition. */
  readonly isAlarm: boolean
  readonly expected: number | undefined
  /** A usual distance of values from the expected one. */
  readonly deviation: number | undefined
  readonly method: Approach
}

/** From so many values on they are judged. */
const judgedFrom = 10
const alarmScore = 3
/** Standardised values are clipped to this. */
const deviationsMax = 50

export function createAnomalyChain({ approach = 'dirichlet-process' }: ChainOptions = {}) {
  const scale = createRobustScale()
  const states = createDirichletStates({ transitionPrior: Number.POSITIVE_INFINITY })
  const shift = createShift({ statistic: 'mean', length: 30, memory: 3000 })
  const statesTail = createTailProbability()
  const shiftTail = createTailProbability()
  const sumTail = createTailProbability()
  const discipline = createAlarmDiscipline({ quietSamples: 100, alarmScore })

  function likelihoodOf(value: number, learns: boolean): number {
    const z = (value - scale.location()) / scale.deviation()
    const clipped = Math.max(-deviationsMax, Math.min(deviationsMax, z))
    const stateScore = Math.max(0, states.take(clipped, learns) + 10)
    const shiftScore = shift.take(clipped, learns)
    let sum = -Math.log10(statesTail.take(stateScore, learns))
    if (shiftScore !== undefined) sum -= Math.log10(shiftTail.take(shiftScore, learns))
    return sumTail.take(sum, learns)
  }

  return Object.freeze({
    /**
     * Judges the value of the next slot; undefined is a missing value. The detectors learn from it if
     * `learns` is true.
     */
    take(value: number | undefined, learns: boolean): AnomalyJudgement {
      const isKnown = scale.count() >= judgedFrom
      const expected = isKnown ? scale.location() + states.expected() * scale.deviation() : undefined
      const deviation = isKnown ? scale.deviation() : undefined
      const hasValue = value !== undefined && Number.isFinite(value)
      const likelihood = hasValue && isKnown ? likelihoodOf(value, learns) : 1
      if (hasValue && (learns || !isKnown)) scale.learn(value)
      const score = likelihood === 1 ? 0 : -Math.log10(likelihood)
      return {
        likelihood,
        score,
        isAlarm: hasValue && discipline.take(score),
        expected,
        deviation,
        method: approach,
      }
    },
  })
}

export type AnomalyChain = ReturnType<typeof createAnomalyChain>
