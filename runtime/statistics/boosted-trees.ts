/**
 * Gradient-boosted regression trees with squared loss, by histograms of at most 64 bins per feature.
 * Plain numbers, so that they can be stored as JSON; the same input gives the same trees. Pure.
 */
import { createSeededRandom } from './seeded-random.ts'

/** A complete binary tree: the children of node i are 2i + 1 and 2i + 2. */
interface Tree {
  /** The feature that an inner node splits by; -1 at a leaf. */
  readonly features: readonly number[]
  /** A value up to this goes to the left; at a leaf, the value that the tree adds. */
  readonly values: readonly number[]
}

export interface BoostedTrees {
  readonly start: number
  readonly trees: readonly Tree[]
}

export interface BoostingSettings {
  readonly trees: number
  readonly depth: number
  readonly rate: number
  readonly leafMin: number
  /** Penalty on the values of leaves, in rows. */
  readonly shrinkage: number
  /** The share of the rows, and of the features, that each tree is fitted to. */
  readonly rowShare: number
  readonly featureShare: number
  readonly seed: number
}

const binsMax = 64

/** Fits trees to the rows, which have no missing values; `targets` has one entry per row. */
export function boostedTreesOf(
  rows: readonly Float64Array[],
  targets: Float64Array,
  settings: BoostingSettings,
): BoostedTrees {
  const binned = binnedOf(rows)
  const start = targets.reduce((sum, value) => sum + value, 0) / Math.max(1, targets.length)
  const residuals = targets.map((value) => value - start)
  const random = createSeededRandom(settings.seed)
  const trees: Tree[] = []
  const sampled = new Int32Array(rows.length)
  for (let round = 0; round < settings.trees; round++) {
    let count = 0
    for (let i = 0; i < rows.length; i++) if (random() < settings.rowShare) sampled[count++] = i
    const features = [...binned.bins.keys()].filter(() => random() < settings.featureShare)
    const grown = grow(binned, residuals, { settings, sampled: sampled.slice(0, count), features })
    subtract(residuals, binned, grown)
    trees.push({ features: [...grown.features], values: [...grown.values] })
  }
  return { start, trees }
}

/** Takes the values of a tree off the residuals of all rows; compares bins, which is as good as values. */
function subtract(residuals: Float64Array, { bins }: Binned, { features, cuts, values }: GrownTree): void {
  for (let i = 0; i < residuals.length; i++) {
    let node = 0
    for (let feature = features[0]!; feature >= 0; feature = features[node]!)
      node = 2 * node + (bins[feature]![i]! <= cuts[node]! ? 1 : 2)
    residuals[i]! -= values[node]!
  }
}

export function valueOfTrees({ start, trees }: BoostedTrees, row: Float64Array): number {
  let sum = start
  for (const tree of trees) sum += valueIn(tree, row)
  return sum
}

function valueIn({ features, values }: Tree, row: Float64Array): number {
  let node = 0
  while (features[node]! >= 0) node = 2 * node + (row[features[node]!]! <= values[node]! ? 1 : 2)
  return values[node]!
}

interface Binned {
  /** The upper bounds of all bins but the last, per feature. */
  readonly bounds: readonly Float64Array[]
  /** The bin of each row, per feature. */
  readonly bins: readonly Uint8Array[]
}

function binnedOf(rows: readonly Float64Array[]): Binned {
  const width = rows[0]?.length ?? 0
  const bounds: Float64Array[] = []
  const bins: Uint8Array[] = []
  for (let feature = 0; feature < width; feature++) {
    const column = new Float64Array(rows.length)
    for (let i = 0; i < rows.length; i++) column[i] = rows[i]![feature]!
    const sorted = column.toSorted()
    const cuts = new Set<number>()
    for (let bin = 1; bin < binsMax; bin++) {
      const at = Math.floor((bin * sorted.length) / binsMax)
      if (at > 0 && sorted[at]! > sorted[at - 1]!) cuts.add((sorted[at]! + sorted[at - 1]!) / 2)
    }
    const upper = Float64Array.from(cuts, rounded)
    bounds.push(upper)
    const binOfRow = new Uint8Array(rows.length)
    for (let i = 0; i < rows.length; i++) binOfRow[i] = binOf(upper, column[i]!)
    bins.push(binOfRow)
  }
  return { bounds, bins }
}

function binOf(bounds: Float64Array, value: number): number {
  let low = 0
  let high = bounds.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (value <= bounds[middle]!) high = middle
    else low = middle + 1
  }
  return low
}

interface Growth {
  readonly settings: BoostingSettings
  readonly sampled: Int32Array
  readonly features: readonly number[]
}

interface GrownTree {
  readonly features: Int32Array
  /** The last bin that goes to the left, of an inner node. */
  readonly cuts: Int32Array
  readonly values: Float64Array
}

function grow(
  binned: Binned,
  residuals: Float64Array,
  { settings, sampled, features: allowed }: Growth,
): GrownTree {
  const size = 2 ** (settings.depth + 1) - 1
  const features = new Int32Array(size).fill(-1)
  const cuts = new Int32Array(size)
  const values = new Float64Array(size)
  const waiting: { node: number; rows: Int32Array }[] = [{ node: 0, rows: sampled }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, rows } = next
    let sum = 0
    for (let i = 0; i < rows.length; i++) sum += residuals[rows[i]!]!
    const split =
      2 * node + 2 < size
        ? bestSplit(binned, residuals, { rows, sum, settings, features: allowed })
        : undefined
    if (split === undefined) {
      values[node] = rounded((settings.rate * sum) / (rows.length + settings.shrinkage))
      continue
    }
    const column = binned.bins[split.feature]!
    features[node] = split.feature
    cuts[node] = split.bin
    values[node] = binned.bounds[split.feature]![split.bin]!
    const [left, right] = partition(rows, column, split.bin)
    waiting.push({ node: 2 * node + 1, rows: left }, { node: 2 * node + 2, rows: right })
  }
  return { features, cuts, values }
}

function partition(rows: Int32Array, column: Uint8Array, bin: number): readonly [Int32Array, Int32Array] {
  const ordered = new Int32Array(rows.length)
  let low = 0
  let high = rows.length
  for (let i = 0; i < rows.length; i++) {
    if (column[rows[i]!]! <= bin) ordered[low++] = rows[i]!
    else ordered[--high] = rows[i]!
  }
  return [ordered.subarray(0, low), ordered.subarray(low)]
}

interface NodeRows {
  readonly rows: Int32Array
  readonly sum: number
  readonly settings: BoostingSettings
  readonly features: readonly number[]
}

/** The split with the largest gain; undefined if none leaves enough rows on both sides. */
function bestSplit(binned: Binned, residuals: Float64Array, { rows, sum, settings, features }: NodeRows) {
  const { leafMin, shrinkage } = settings
  if (rows.length < 2 * leafMin) return undefined
  let best: { feature: number; bin: number } | undefined
  let most = sum ** 2 / (rows.length + shrinkage) + 1e-12
  const sums = new Float64Array(binsMax)
  const counts = new Int32Array(binsMax)
  for (const feature of features) {
    const column = binned.bins[feature]!
    sums.fill(0)
    counts.fill(0)
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!
      const bin = column[row]!
      sums[bin]! += residuals[row]!
      counts[bin]!++
    }
    let left = 0
    let leftCount = 0
    for (let bin = 0; bin < binned.bounds[feature]!.length; bin++) {
      left += sums[bin]!
      leftCount += counts[bin]!
      const rightCount = rows.length - leftCount
      if (leftCount < leafMin || rightCount < leafMin) continue
      const gain = left ** 2 / (leftCount + shrinkage) + (sum - left) ** 2 / (rightCount + shrinkage)
      if (gain > most) {
        most = gain
        best = { feature, bin }
      }
    }
  }
  return best
}

/** Six digits are enough and make the stored model smaller. */
const rounded = (value: number): number => Number(value.toPrecision(6))
