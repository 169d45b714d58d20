/**
 * `npm run eval:patterns -- --data DIR`: trains and classifies days of the parking feed by the code of the pattern
 * extractor: weekday, Saturday or Sunday. Prints the accuracy by cross-validation and the adjusted Rand index.
 * Ends with 1 below a target.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { featuresOf } from '#plugins/patterns/models/features.ts'
import { parseModel } from '#plugins/patterns/models/pattern-model.ts'
import { type TrainingTask, train, usualPreparation } from '#plugins/patterns/models/train/training.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { adjustedRandIndex } from '#test/kit/agreement.ts'
import { optionsOf, wrongUsage } from './options.ts'

const help = `Usage: npm run eval:patterns -- --data DIR

  --data DIR  the folder with vehiclecount.csv, or the folder above aarhus_parking

Exit code: 0 accuracy at least 0.90 and adjusted Rand index at least 0.35; 1 one is below; 64 wrong usage.
`
const targets = { accuracy: 0.9, randIndex: 0.35 }
const foldCount = 10
const seeds = [1, 2, 3, 4, 5]
const slotsPerDay = 48

interface Day {
  readonly features: Float64Array
  readonly label: 'weekday' | 'saturday' | 'sunday'
}

/** Days without a missing value. */
function daysIn(text: string): readonly Day[] {
  const [header = '', ...lines] = text.trim().split(/\r?\n/)
  const garages = header.split(',').length - 1
  const rows = Map.groupBy(lines, (line) => line.slice(0, 10))
  return [...rows].flatMap(([date, ofDay]) => {
    const slots = ofDay.map((line) => line.split(',').slice(1).map(parsedCell))
    const isComplete = slots.length === slotsPerDay && slots.every((slot) => slot.every(Number.isFinite))
    if (!isComplete) return []
    const window = Array.from({ length: garages }, (_, i) => Float64Array.from(slots, (slot) => slot[i]!))
    const weekday = new Date(`${date}T00:00Z`).getUTCDay()
    const label = weekday === 0 ? 'sunday' : weekday === 6 ? 'saturday' : 'weekday'
    return [{ features: featuresOf('segments', window), label }]
  })
}

const parsedCell = (cell: string): number => (cell.trim() === '' ? Number.NaN : Number(cell))

function taskOf(days: readonly Day[], method: TrainingTask['method'], seed: number): TrainingTask {
  const isLabelled = method === 'nearest-neighbour'
  return {
    method,
    features: 'segments',
    windows: days.map(({ features }) => features),
    labels: isLabelled ? days.map(({ label }) => label) : [],
    neighbours: 3,
    seed,
    preparation: isLabelled ? usualPreparation.labelled : usualPreparation.unlabelled,
  }
}

/** Each class is spread over all folds. All that a model learns comes from the other nine folds. */
function accuracyOf(days: readonly Day[], seed: number): number {
  const random = createSeededRandom(seed)
  const shuffled = days
    .map((day) => ({ day, key: random() }))
    .sort((a, b) => a.day.label.localeCompare(b.day.label) || a.key - b.key)
    .map(({ day }) => day)
  let right = 0
  for (let fold = 0; fold < foldCount; fold++) {
    const others = shuffled.filter((_, i) => i % foldCount !== fold)
    const model = parseModel(train(taskOf(others, 'nearest-neighbour', seed)).model)
    const own = shuffled.filter((_, i) => i % foldCount === fold)
    right += own.filter(({ features, label }) => model.classify(features).label === label).length
  }
  return right / days.length
}

function clusteringOf(days: readonly Day[], method: TrainingTask['method'], seed: number) {
  const { model, labelCount } = train(taskOf(days, method, seed))
  const parsed = parseModel(model)
  const found = days.map(({ features }) => parsed.classify(features).label)
  const known = days.map(({ label }) => label)
  return { index: adjustedRandIndex(found, known), labelCount }
}

const meanOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length
const shown = (values: readonly number[]): string => values.map((value) => value.toFixed(3)).join(' ')

const { data } = optionsOf('eval:patterns', help, { data: { type: 'string' } })
if (data === undefined) wrongUsage('eval:patterns', '--data is missing')
const path = [data, join(data, 'aarhus_parking')]
  .map((folder) => join(folder, 'vehiclecount.csv'))
  .find((file) => existsSync(file))
if (path === undefined) wrongUsage('eval:patterns', `there is no vehiclecount.csv in ${data}`)
const days = daysIn(readFileSync(path, 'utf8'))
const counts = Map.groupBy(days, ({ label }) => label)
const accuracies = seeds.map((seed) => accuracyOf(days, seed))
const mixtures = seeds.map((seed) => clusteringOf(days, 'gaussian-mixture', seed))
const clusters = seeds.map((seed) => clusteringOf(days, 'k-means', seed))
const [accuracy, randIndex] = [meanOf(accuracies), meanOf(mixtures.map(({ index }) => index))]
const majority = Math.max(...[...counts.values()].map(({ length }) => length)) / days.length
process.stdout.write(`complete days      ${days.length}: ${[...counts].map(([label, { length }]) => `${length} ${label}`).join(', ')}
3 neighbours       accuracy ${accuracy.toFixed(3)} (target ${targets.accuracy}, majority ${majority.toFixed(3)}); seeds ${shown(accuracies)}
Gaussian mixture   adjusted Rand index ${randIndex.toFixed(3)} (target ${targets.randIndex}); seeds ${shown(mixtures.map(({ index }) => index))}; components ${mixtures.map(({ labelCount }) => labelCount).join(' ')}
k-means            adjusted Rand index ${meanOf(clusters.map(({ index }) => index)).toFixed(3)}; clusters ${clusters.map(({ labelCount }) => labelCount).join(' ')}
`)
process.exitCode = accuracy >= targets.accuracy && randIndex >= targets.randIndex ? 0 : 1
