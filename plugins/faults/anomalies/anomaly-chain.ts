/**
 * The anomaly detectors of one stream, value by value: the model of the approach (seasonal ARIMA or
 * Dirichlet states), the shift of the mean, and the distance to the history (or the shift of the variance).
 * Each score becomes a probability given the earlier ones; their logarithms are summed. Nothing of the
 * future is used. It holds no clock and does no I/O: the caller maps observations to slots, and replays the
 * history after a restart.
 */
import { createAlarmDiscipline } from './alarm-discipline.ts'
import {
  type Approach,
  type ApproachChoice,
  type ApproachTask,
  type ChooseApproach,
  chooseApproach,
} from './approach.ts'
import { type ArimaDetector, createArimaDetector } from './arima-detector.ts'
import { createDirichletStates } from './dirichlet-states.ts'
import { createNeighbourLibrary } from './neighbour-library.ts'
import { createRobustScale } from './robust-scale.ts'
import { createShift } from './shift.ts'
import { createSlotHistory } from './slot-history.ts'
import { createTailProbability } from './tail-probability.ts'

export interface ChainOptions {
  /** Slots of a period, if it is known; else it is detected. */
  readonly periodSlots?: number
  /** Slots of a day and of a week: a detected period near them is preferred. */
  readonly preferredPeriods?: readonly number[]
  /** Omitted: chosen by period and history. */
  readonly approach?: Approach
  /** Compares the latest values with the history; costs more time and memory. */
  readonly withNeighbourLibrary?: boolean
  /** Chooses the approach later, as in a thread. Omitted: it is chosen at once, within some 20 ms. */
  readonly choose?: ChooseApproach | undefined
}

export interface AnomalyJudgement {
  /** Probability of values as abnormal as this, given earlier ones: small is abnormal. */
  readonly likelihood: number
  /** -log10 of the likelihood. */
  readonly score: number
  /** The sum of -log10 of the detectors' probabilities: decides on alarms. */
  readonly evidence: number
  /** True once for an abnormal condition. */
  readonly isAlarm: boolean
  readonly method: Approach
}

export interface AnomalyPrediction {
  readonly expected: number
  /** A usual distance of values from the expected one. */
  readonly deviation: number
}

/** From so many values on they are judged. */
const judgedFrom = 10
/** Evidence from which a value is an alarm, with and without the neighbour library. */
const alarmEvidence = { library: 5.4, plain: 4.8 }
/** Samples after an alarm without another one. */
export const quietSamples = 100
/** Standardised values are limited to this. */
const deviationsMax = 50
/** A range of values in which squares do not overflow. */
const valueMax = 1e100
/** Slots of history for choices of the approach: at least, and at most for longer periods. */
const historySlots = { least: 2048, most: 4320 }
/**
 * The first choice of the approach; later ones follow at doublings, 880 being just above three days of 5
 * minutes.
 */
const firstChoiceAt = 220
/** An ARIMA takes over from the Dirichlet states when so many of its scores are known. */
const calibratedFrom = 50
/** Moments of the shift follow over about so many values. */
const shiftMemory = 20_000
const library = { length: 48, size: 1500 }

export function createAnomalyChain(options: ChainOptions = {}) {
  const { periodSlots, withNeighbourLibrary = false } = options
  const history = createSlotHistory(
    Math.min(historySlots.most, Math.max(historySlots.least, 3 * (periodSlots ?? 0))),
  )
  const scale = createRobustScale()
  const states = createDirichletStates()
  const shift = createShift({ statistic: 'mean', length: 30, memory: shiftMemory })
  const neighbours = withNeighbourLibrary ? createNeighbourLibrary(library) : undefined
  const varianceShift = withNeighbourLibrary
    ? undefined
    : createShift({ statistic: 'variance', length: 30, memory: shiftMemory })
  const tails = {
    model: createTailProbability(),
    shift: createTailProbability(),
    other: createTailProbability(),
    sum: createTailProbability(),
  }
  const discipline = createAlarmDiscipline({
    quietSamples,
    alarmScore: withNeighbourLibrary ? alarmEvidence.library : alarmEvidence.plain,
  })
  let arima:
    | { readonly detector: ArimaDetector; readonly tail: typeof tails.model; readonly period: number }
    | undefined
  let nextChoiceAt = firstChoiceAt
  let isChoosing = false

  const isArima = (): boolean => arima !== undefined && arima.tail.count() >= calibratedFrom

  function chooseIfDue(): void {
    const isDue = history.slot() >= nextChoiceAt && options.approach !== 'dirichlet-process'
    if (!isDue || isChoosing) return
    nextChoiceAt *= 2
    const task = (): ApproachTask => ({
      values: history.values(),
      firstSlot: history.firstSlot(),
      isArimaForced: options.approach === 'seasonal-arima',
      ...(periodSlots !== undefined && { periodSlots }),
      ...(options.preferredPeriods !== undefined && { preferredPeriods: options.preferredPeriods }),
    })
    if (options.choose === undefined) {
      adopt(chooseApproach(task()))
      return
    }
    isChoosing = true
    options.choose(task, (choice) => {
      isChoosing = false
      if (choice !== undefined) adopt(choice)
    })
  }

  function adopt({ model }: ApproachChoice): void {
    if (model === undefined) {
      arima = undefined
      return
    }
    const start = { model, values: history.values(), firstSlot: history.firstSlot() }
    const tail = arima?.tail ?? createTailProbability()
    arima = { detector: createArimaDetector(start), tail, period: model.period }
  }

  /** -log10 of the probability that the approach's model gives. */
  function modelEvidence(value: number, standardised: number, learns: boolean): number {
    const stateScore = Math.max(0, states.take(standardised, learns) + 10)
    const byStates = tails.model.take(stateScore, learns)
    const usesArima = isArima()
    const arimaScore = arima?.detector.take(value, learns)
    if (arima === undefined || arimaScore === undefined) return -Math.log10(byStates)
    const byArima = arima.tail.take(arimaScore, learns)
    return -Math.log10(usesArima ? byArima : byStates)
  }

  function evidenceOf(value: number, learns: boolean): number {
    const deviation = scale.deviation()
    const standardised = limited((value - scale.location()) / deviation, deviationsMax)
    let evidence = modelEvidence(value, standardised, learns)
    const shiftScore = shift.take(value, learns)
    if (shiftScore !== undefined) evidence -= Math.log10(tails.shift.take(shiftScore, learns))
    const otherScore =
      neighbours === undefined
        ? varianceShift!.take(standardised, learns)
        : distance(neighbours.take(scale.location() + standardised * deviation, learns))
    if (otherScore !== undefined) evidence -= Math.log10(tails.other.take(otherScore, learns))
    return evidence
  }

  const distance = (raw: number | undefined): number | undefined =>
    raw === undefined ? undefined : raw / scale.deviation()

  function predict(): AnomalyPrediction | undefined {
    if (scale.count() < judgedFrom) return undefined
    if (isArima()) return arima!.detector.predict()
    return {
      expected: scale.location() + states.expected() * scale.deviation(),
      deviation: scale.deviation(),
    }
  }

  function judge(value: number, learns: boolean): AnomalyJudgement {
    const method: Approach = isArima() ? 'seasonal-arima' : 'dirichlet-process'
    const evidence = evidenceOf(value, learns)
    const likelihood = tails.sum.take(evidence, learns)
    return {
      likelihood,
      score: likelihood === 1 ? 0 : -Math.log10(likelihood),
      evidence,
      isAlarm: discipline.take(evidence),
      method,
    }
  }

  /** A missing value, or one of the first. */
  function unjudged(): AnomalyJudgement {
    const method: Approach = isArima() ? 'seasonal-arima' : 'dirichlet-process'
    return { likelihood: 1, score: 0, evidence: 0, isAlarm: false, method }
  }

  return Object.freeze({
    /** The approach that judges now, and the slots of its period if it has one. */
    approach: () => ({
      method: isArima() ? ('seasonal-arima' as const) : ('dirichlet-process' as const),
      periodSlots: isArima() && arima!.period > 0 ? arima!.period : undefined,
    }),
    /** The value of the next slot, before it is known; undefined after less than ten values. */
    predict,
    /**
     * Judges the value of the next slot; undefined is a missing value. The detectors learn from it if
     * `learns` is true.
     */
    take(value: number | undefined, learns: boolean): AnomalyJudgement {
      if (value === undefined || !Number.isFinite(value)) {
        const judgement = unjudged()
        discipline.take(0)
        history.push(undefined)
        arima?.detector.take(undefined, learns)
        return judgement
      }
      const known = limited(value, valueMax)
      const isFirst = scale.count() < judgedFrom
      const judgement = isFirst ? unjudged() : judge(known, learns)
      history.push(learns || isFirst ? known : undefined)
      if (learns || isFirst) scale.learn(known)
      chooseIfDue()
      return judgement
    },
  })
}

export type AnomalyChain = ReturnType<typeof createAnomalyChain>

const limited = (value: number, limit: number): number => Math.max(-limit, Math.min(limit, value))
