/**
 * The scoring rules of the Numenta Anomaly Benchmark (NAB): the earliest detection in a window earns the
 * more the earlier it is, a detection outside costs the less the closer it follows a window, a missed window
 * costs its weight. Totals of all files are scaled to 0 for no detection at all and 100 for the earliest
 * possible detections. Pure.
 */

export interface NabProfile {
  readonly truePositive: number
  readonly falseNegative: number
  readonly falsePositive: number
}

export const nabProfiles = {
  standard: { truePositive: 1, falseNegative: 1, falsePositive: 0.11 },
  lowFalsePositive: { truePositive: 1, falseNegative: 1, falsePositive: 0.22 },
  lowFalseNegative: { truePositive: 1, falseNegative: 2, falsePositive: 0.11 },
} satisfies Record<string, NabProfile>

/** Rows of a window, both included. */
export type NabWindow = readonly [first: number, last: number]

export interface NabTruth {
  readonly rows: number
  readonly windows: readonly NabWindow[]
}

/** What detections of one or several files earned, before scaling. */
export interface NabTally {
  readonly raw: number
  readonly windows: number
  readonly hits: number
  readonly falseAlarms: number
}

export const emptyTally: NabTally = { raw: 0, windows: 0, hits: 0, falseAlarms: 0 }

/** Rows at the start of a file in which nothing is scored. */
export const probationOf = (rows: number): number => Math.min(Math.floor(0.15 * rows), 750)

/** 1 far before the right edge of a window, 0 at the edge, -1 from three widths behind it. */
const positionWeight = (position: number): number =>
  position > 3 ? -1 : 2 / (1 + Math.exp(5 * position)) - 1

/** The value of each row as a detection: which window it hits (-1: none), and the weight of its position. */
function positionsOf({ rows, windows }: NabTruth) {
  const window = new Int32Array(rows).fill(-1)
  const weight = new Float64Array(rows).fill(-1)
  for (const [at, [first, last]] of windows.entries()) {
    const width = last - first + 1
    const next = windows[at + 1]?.[0] ?? rows
    for (let i = first; i <= last; i++) {
      window[i] = at
      weight[i] = positionWeight(-(last - i + 1) / width) / positionWeight(-1)
    }
    for (let i = last + 1; i < next; i++) weight[i] = positionWeight((i - last) / (width - 1))
  }
  return { window, weight }
}

/** Windows that reach beyond probation: only they count. */
const countedWindows = ({ rows, windows }: NabTruth): number =>
  windows.filter(([, last]) => last >= probationOf(rows)).length

/** Scores the detections of a file: row numbers in rising order. */
export function tallyDetections(
  truth: NabTruth,
  detections: Iterable<number>,
  profile: NabProfile,
): NabTally {
  const { window, weight } = positionsOf(truth)
  const probation = probationOf(truth.rows)
  const windows = countedWindows(truth)
  const hit = new Set<number>()
  let raw = 0
  let falseAlarms = 0
  for (const row of detections) {
    if (row < probation) continue
    const at = window[row]!
    if (at === -1) {
      falseAlarms++
      raw += profile.falsePositive * weight[row]!
    } else if (!hit.has(at)) {
      hit.add(at)
      raw += profile.truePositive * weight[row]!
    }
  }
  raw -= profile.falseNegative * (windows - hit.size)
  return { raw, windows, hits: hit.size, falseAlarms }
}

export const addTallies = (a: NabTally, b: NabTally): NabTally => ({
  raw: a.raw + b.raw,
  windows: a.windows + b.windows,
  hits: a.hits + b.hits,
  falseAlarms: a.falseAlarms + b.falseAlarms,
})

/**
 * Scales a total: 0 for no detection at all, 100 for a detection at the start of each window and no other.
 */
export function scaledScore({ raw, windows }: NabTally, profile: NabProfile): number {
  const [none, perfect] = [-profile.falseNegative * windows, profile.truePositive * windows]
  return (100 * (raw - none)) / (perfect - none)
}

/** A file with the score of each row: a row is a detection if its score reaches the threshold. */
export interface ScoredFile extends NabTruth {
  readonly scores: ArrayLike<number>
}

export interface BestThreshold {
  readonly threshold: number
  readonly score: number
  readonly tally: NabTally
}

/** Tries every score that occurs as the threshold for all files, from the highest down. */
export function bestThreshold(files: readonly ScoredFile[], profile: NabProfile): BestThreshold {
  const rows = files.flatMap((file, at) => {
    const { window, weight } = positionsOf(file)
    const found: { score: number; file: number; window: number; weight: number }[] = []
    for (let i = probationOf(file.rows); i < file.rows; i++)
      found.push({ score: file.scores[i]!, file: at, window: window[i]!, weight: weight[i]! })
    return found
  })
  rows.sort((a, b) => b.score - a.score)
  const windows = files.reduce((sum, file) => sum + countedWindows(file), 0)
  const earned = new Map<string, number>()
  let raw = -profile.falseNegative * windows
  let falseAlarms = 0
  const tally = (): NabTally => ({ raw, windows, hits: earned.size, falseAlarms })
  let best: BestThreshold = {
    threshold: Number.POSITIVE_INFINITY,
    score: scaledScore(tally(), profile),
    tally: tally(),
  }
  for (const [at, row] of rows.entries()) {
    if (row.window === -1) {
      falseAlarms++
      raw += profile.falsePositive * row.weight
    } else {
      const key = `${row.file}|${row.window}`
      const before = earned.get(key)
      const now = Math.max(before ?? Number.NEGATIVE_INFINITY, profile.truePositive * row.weight)
      raw += now - (before ?? -profile.falseNegative)
      earned.set(key, now)
    }
    if (rows[at + 1]?.score === row.score) continue
    const score = scaledScore(tally(), profile)
    if (score > best.score) best = { threshold: row.score, score, tally: tally() }
  }
  return best
}
