/**
 * Reads a folder of CSV files into one recording: all samples ordered by time, all places, and the reasons
 * for skipped files. Each file is read as a whole, up to a size limit.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { type LonLat, readTable, type Sample, type SeriesStep } from './series.ts'

export interface Recording {
  readonly samples: readonly Sample[]
  readonly places: ReadonlyMap<string, LonLat>
  /** `file: reason` of each skipped file. */
  readonly skipped: readonly string[]
}

/** @throws cli.usage if the folder cannot be read or contains no series. */
export function readSeriesFolder(folder: string, pace: SeriesStep): Recording {
  const samples: Sample[] = []
  const places = new Map<string, LonLat>()
  const skipped: string[] = []
  for (const file of csvFiles(folder)) {
    const path = join(folder, file)
    if (statSync(path).size > limits.demoFileBytesMax.value) {
      skipped.push(`${file}: it is larger than ${limits.demoFileBytesMax.value} bytes`)
      continue
    }
    const table = readTable(basename(file, '.csv'), readFileSync(path, 'utf8'), pace)
    if (table.kind === 'unknown') skipped.push(`${file}: ${table.reason}`)
    else if (table.kind === 'places') for (const [id, place] of table.places) places.set(id, place)
    else for (const sample of table.samples) samples.push(sample)
  }
  if (samples.length === 0) {
    throw new GatewayError('cli.usage', `${folder} contains no series: ${skipped.join('; ')}`, { folder })
  }
  samples.sort((a, b) => a.at - b.at)
  return { samples, places, skipped }
}

/** Names of the CSV files of a folder. @throws cli.usage if it cannot be read or has none. */
export function csvFiles(folder: string): string[] {
  const refusal = (why: string, cause?: unknown): GatewayError =>
    new GatewayError('cli.usage', `${folder} ${why}`, { folder }, cause)
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch (error) {
    throw refusal(`cannot be read: ${(error as Error).message}`, error)
  }
  const files = names.filter((name) => /\.csv$/i.test(name)).sort()
  if (files.length === 0) throw refusal('contains no CSV file')
  return files
}
