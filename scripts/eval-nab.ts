/**
 * `npm run eval:nab -- --data DIR`: runs the anomaly detectors of the faults plugin over files of the
 * Numenta Anomaly Benchmark, value by value, and prints the scores: each detector alone, and the chain as
 * shipped. One threshold serves all files. Nothing is taken from the minimum, maximum or length of a file.
 * Ends with 1 below a target.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createAlarmDiscipline } from '#plugins/faults/anomalies/alarm-discipline.ts'
import {
  type ChainOptions,
  createAnomalyChain,
  quietSamples,
} from '#plugins/faults/anomalies/anomaly-chain.ts'
import { chooseApproach } from '#plugins/faults/anomalies/approach.ts'
import { type ArimaDetector, createArimaDetector } from '#plugins/faults/anomalies/arima-detector.ts'
import { createDirichletStates } from '#plugins/faults/anomalies/dirichlet-states.ts'
import { createNeighbourLibrary } from '#plugins/faults/anomalies/neighbour-library.ts'
import { createRobustScale } from '#plugins/faults/anomalies/robust-scale.ts'
import { createShift } from '#plugins/faults/anomalies/shift.ts'
import { createTailProbability } from '#plugins/faults/anomalies/tail-probability.ts'
import { type NabFile, publishedScores, readNabFiles } from '#test/kit/nab-files.ts'
import {
  addTallies,
  bestThreshold,
  emptyTally,
  type NabProfile,
  type NabTally,
  nabProfiles,
  probationOf,
  scaledScore,
  tallyDetections,
} from '#test/kit/nab-scoring.ts'
import { optionsOf, wrongUsage } from './options.ts'
import { createProgress, durationOf } from './task-threads.ts'

const help = `Usage: npm run eval:nab -- --data DIR

  --data DIR  the folder with data, labels and published, or the folder above nab

Exit code: 0 all targets are reached; 1 one is missed; 64 wrong usage.
`
const targets: Readonly<Record<string, number>> = {
  'chain with library': 66,
  'seasonal ARIMA': 50,
  'Dirichlet states': 53,
}
/**
 * Scores of the 37 development files that the published results give with an exhaustive choice of the
 * threshold.
 */
const published: Readonly<Record<string, number>> = {
  numenta: 69.2,
  contextOSE: 71.1,
  relativeEntropy: 53.5,
}
const developmentFiles = 37
const publishedTolerance = 0.2
const thresholdCount = 120
/** Shares of all scores among which thresholds are tried. */
const shares = { least: 3e-4, most: 0.05 }

/** The score of each next value; undefined before there is one. */
type Scorer = (value: number) => number | undefined

/** A scorer of values in robust deviations. */
function standardised(score: (value: number) => number | undefined): Scorer {
  const scale = createRobustScale()
  return (value) => {
    const known = scale.count() >= 10
    const z = (value - scale.location()) / scale.deviation()
    scale.learn(value)
    return known ? score(Math.max(-50, Math.min(50, z))) : undefined
  }
}

/** -log10 of the probability of a raw score given the earlier ones. */
function calibrated(scorer: Scorer): Scorer {
  const tail = createTailProbability()
  return (value) => {
    const score = scorer(value)
    return score === undefined ? undefined : -Math.log10(tail.take(score, true))
  }
}

function arimaScorer(): Scorer {
  const history: number[] = []
  let detector: ArimaDetector | undefined
  let nextFitAt = 220
  return (value) => {
    const score = detector?.take(value, true)
    history.push(value)
    if (history.length === nextFitAt) {
      nextFitAt *= 2
      const firstSlot = Math.max(0, history.length - 2048)
      const values = Float64Array.from(history.slice(firstSlot))
      const { model } = chooseApproach({ values, firstSlot, isArimaForced: true })
      if (model !== undefined) detector = createArimaDetector({ model, values, firstSlot })
    }
    return score
  }
}

function dirichletScorer(): Scorer {
  const states = createDirichletStates()
  return standardised((z) => Math.max(0, states.take(z, true) + 10))
}

function shiftScorer(statistic: 'mean' | 'variance'): Scorer {
  const shift = createShift({ statistic, length: 30, memory: 20_000 })
  const score: Scorer = (value) => shift.take(value, true)
  return statistic === 'mean' ? score : standardised(score)
}

function neighbourScorer(length: number): Scorer {
  const library = createNeighbourLibrary({ length, size: 1500 })
  return standardised((z) => library.take(z, true))
}

function chainScorer(options: ChainOptions): Scorer {
  const chain = createAnomalyChain(options)
  return (value) => chain.take(value, true).evidence
}

const detectors: Readonly<Record<string, () => Scorer>> = {
  'seasonal ARIMA': () => calibrated(arimaScorer()),
  'Dirichlet states': () => calibrated(dirichletScorer()),
  'shift of the mean': () => calibrated(shiftScorer('mean')),
  'shift of the variance': () => calibrated(shiftScorer('variance')),
  'nearest neighbours': () => calibrated(neighbourScorer(48)),
  'chain, ARIMA only': () => chainScorer({ approach: 'seasonal-arima', withNeighbourLibrary: true }),
  'chain, Dirichlet only': () => chainScorer({ approach: 'dirichlet-process', withNeighbourLibrary: true }),
  'chain without library': () => chainScorer({}),
  'chain with library': () => chainScorer({ withNeighbourLibrary: true }),
}

function scoresOf(file: NabFile, create: () => Scorer): Float64Array {
  const scorer = create()
  return file.values.map((value) => scorer(value) ?? 0)
}

function alarmsOf(scores: Float64Array, alarmScore: number): number[] {
  const discipline = createAlarmDiscipline({ quietSamples, alarmScore })
  const rows: number[] = []
  for (const [row, score] of scores.entries()) if (discipline.take(score)) rows.push(row)
  return rows
}

interface Outcome {
  readonly threshold: number
  readonly score: number
  readonly tally: NabTally
}

function outcomeAt(all: readonly Float64Array[], threshold: number, profile: NabProfile): Outcome {
  const tally = files
    .map((file, i) => tallyDetections(file, alarmsOf(all[i]!, threshold), profile))
    .reduce(addTallies, emptyTally)
  return { threshold, score: scaledScore(tally, profile), tally }
}

/** Tries thresholds among the scores of all files. */
function bestOutcome(all: readonly Float64Array[], profile: NabProfile): Outcome {
  const scores = all
    .flatMap((some, i) => [...some.subarray(probationOf(files[i]!.rows))])
    .sort((a, b) => b - a)
  const thresholds = Array.from({ length: thresholdCount }, (_, step) => {
    const share = shares.least * (shares.most / shares.least) ** (step / (thresholdCount - 1))
    return scores[Math.floor(share * scores.length)]!
  })
  return [...new Set(thresholds)]
    .map((threshold) => outcomeAt(all, threshold, profile))
    .reduce((a, b) => (b.score > a.score ? b : a))
}

function byFolder(all: readonly Float64Array[], threshold: number): string[] {
  return folders.map((folder) => {
    const tally = files
      .map((file, i) => ({ file, scores: all[i]! }))
      .filter(({ file }) => file.folder === folder)
      .map(({ file, scores }) => tallyDetections(file, alarmsOf(scores, threshold), nabProfiles.standard))
      .reduce(addTallies, emptyTally)
    return tally.windows === 0
      ? `${tally.falseAlarms} fa`
      : scaledScore(tally, nabProfiles.standard).toFixed(1)
  })
}

/** Prints the line of a detector, with its target if it has one. */
function printDetector(name: string, create: () => Scorer): void {
  const target = targets[name]
  const started = performance.now()
  const all = files.map((file) => scoresOf(file, create))
  const micros = ((performance.now() - started) * 1000) / files.reduce((sum, { rows }) => sum + rows, 0)
  const standard = bestOutcome(all, nabProfiles.standard)
  const lowFalsePositive = bestOutcome(all, nabProfiles.lowFalsePositive)
  const lowFalseNegative = bestOutcome(all, nabProfiles.lowFalseNegative)
  printRow([
    name,
    ...[standard, lowFalsePositive, lowFalseNegative].map(({ score }) => score.toFixed(1)),
    `${standard.tally.hits}/${standard.tally.windows}`,
    `${standard.tally.falseAlarms}`,
    standard.threshold.toFixed(2),
    ...byFolder(all, standard.threshold),
    micros.toFixed(1),
    ...(target === undefined ? [] : [verdictOf(standard.score >= target, `${target}`)]),
  ])
}

/** The alarms of the chain as shipped: no threshold is tried. */
function printShipped(options: ChainOptions, name: string): void {
  const alarms = files.map((file) => {
    const chain = createAnomalyChain(options)
    return [...file.values.keys()].filter((row) => chain.take(file.values[row], true).isAlarm)
  })
  const scores = Object.values(nabProfiles).map((profile) => {
    const tally = files
      .map((file, i) => tallyDetections(file, alarms[i]!, profile))
      .reduce(addTallies, emptyTally)
    return { tally, text: scaledScore(tally, profile).toFixed(1) }
  })
  const { tally } = scores[0]!
  printRow([
    name,
    ...scores.map(({ text }) => text),
    `${tally.hits}/${tally.windows}`,
    `${tally.falseAlarms}`,
  ])
}

const widths = [26, 9, 8, 8, 7, 6, 6]
const printRow = (cells: readonly string[]): void => {
  process.stdout.write(
    `${cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 8))
      .join(' ')
      .trimEnd()}\n`,
  )
}

/** Scores published results, to check the rules. */
function checkPublished(): void {
  for (const [detector, expected] of Object.entries(published)) {
    const scores = publishedScores(folder, detector)
    if (scores === undefined) continue
    const scored = files.map((file) => ({ ...file, scores: scores[file.name]! }))
    const outcomes = Object.values(nabProfiles).map((profile) => bestThreshold(scored, profile))
    const { score, threshold, tally } = outcomes[0]!
    const isRight = files.length !== developmentFiles || Math.abs(score - expected) <= publishedTolerance
    printRow([
      `published ${detector}`,
      ...outcomes.map((outcome) => outcome.score.toFixed(1)),
      `${tally.hits}/${tally.windows}`,
      `${tally.falseAlarms}`,
      threshold.toFixed(2),
      verdictOf(isRight, `${expected} +- ${publishedTolerance}`),
    ])
  }
}

/** The verdict on a target, which decides the exit code. */
function verdictOf(isGood: boolean, target: string): string {
  isReached &&= isGood
  return `(target ${target}: ${isGood ? 'reached' : 'MISSED'})`
}

const begun = performance.now()
const { data } = optionsOf('eval:nab', help, { data: { type: 'string' } })
if (data === undefined) wrongUsage('eval:nab', '--data is missing')
const found = [data, join(data, 'nab')].find((one) => existsSync(join(one, 'labels/combined_windows.json')))
if (found === undefined) wrongUsage('eval:nab', `there is no labels/combined_windows.json in ${data}`)
const folder = found
const files = readNabFiles(folder)
const folders = [...new Set(files.map((file) => file.folder))]
const shortNames = folders.map((name) => name.replace(/^real|^artificial/, '').slice(0, 8))
printRow(['detector', 'standard', 'low FP', 'low FN', 'hits', 'false', 'from', ...shortNames, 'us'])
let isReached = true
checkPublished()
const count = Object.keys(detectors).length
const progress = createProgress('eval:nab', count, count)
for (const [name, create] of Object.entries(detectors)) {
  printDetector(name, create)
  progress.add(1)
}
printShipped({}, 'shipped, without library')
printShipped({ withNeighbourLibrary: true }, 'shipped, with library')
process.stdout.write(
  `${isReached ? 'All targets are reached' : 'A target is missed'} (${durationOf(performance.now() - begun)}).\n`,
)
process.exitCode = isReached ? 0 : 1
