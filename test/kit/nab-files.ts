/** Reads files of the Numenta Anomaly Benchmark: values, the rows of each label window, published scores. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { NabTruth, NabWindow } from './nab-scoring.ts'

export interface NabFile extends NabTruth {
  /** Folder and name, such as `realTraffic/speed_7578.csv`. */
  readonly name: string
  readonly folder: string
  /** Milliseconds, as if the local times of the file were UTC. */
  readonly times: Float64Array
  readonly values: Float64Array
}

/** All labelled files below a folder, in the order of the label file. */
export function readNabFiles(folder: string): readonly NabFile[] {
  const labels = JSON.parse(readFileSync(join(folder, 'labels/combined_windows.json'), 'utf8')) as Readonly<
    Record<string, readonly (readonly [string, string])[]>
  >
  return Object.entries(labels)
    .filter(([name]) => existsSync(join(folder, 'data', name)))
    .map(([name, windows]) => readNabFile(folder, name, windows))
}

function readNabFile(folder: string, name: string, labels: readonly (readonly [string, string])[]): NabFile {
  const lines = readFileSync(join(folder, 'data', name), 'utf8')
    .trim()
    .split(/\r?\n/)
    .slice(1)
  const cells = lines.map((line) => line.split(','))
  const stamps = cells.map(([stamp]) => stamp!)
  const windows = labels.map(
    ([first, last]): NabWindow => [rowOf(stamps, first, name), rowOf(stamps, last, name)],
  )
  return {
    name,
    folder: name.split('/')[0]!,
    rows: cells.length,
    windows,
    times: Float64Array.from(stamps, (stamp) => Date.parse(`${stamp.replace(' ', 'T')}Z`)),
    values: Float64Array.from(cells, ([, value]) => Number(value)),
  }
}

/** The first row with this time; labels have a fraction of a second that the rows do not have. */
function rowOf(stamps: readonly string[], label: string, name: string): number {
  const row = stamps.indexOf(label.slice(0, 19))
  if (row === -1) throw new TypeError(`${name} has no row at ${label}`)
  return row
}

/** The published scores of a detector by file; undefined if the folder has none. */
export function publishedScores(
  folder: string,
  detector: string,
): Readonly<Record<string, number[]>> | undefined {
  const path = join(folder, 'published', `${detector}.json.gz`)
  if (!existsSync(path)) return undefined
  return JSON.parse(gunzipSync(readFileSync(path)).toString('utf8')) as Record<string, number[]>
}
