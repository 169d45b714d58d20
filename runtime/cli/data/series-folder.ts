/**
 * A folder of CSV files as one record: all samples in the order of their times, all places, and what could not be
 * read. Files are read whole, each within a limit.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { type Pace, type Position, readTable, type Sample } from './series.ts'

export interface Recording {
  readonly samples: readonly Sample[]
  readonly places: ReadonlyMap<string, Position>
  /** `file: reason` of what was left out. */
  readonly skipped: readonly string[]
}

/** @throws cli.usage when the folder cannot be read or holds no series. */
export function readSeriesFolder(folder: string, pace: Pace): Recording {
  const samples: Sample[] = []
  const places = new Map<string, Position>()
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
    throw new GatewayError('cli.usage', `${folder} holds no series: ${skipped.join('; ')}`, { folder })
  }
  samples.sort((a, b) => a.at - b.at)
  return { samples, places, skipped }
}

/** Names of the CSV files of a folder. @throws cli.usage when it cannot be read or has none. */
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
  if (files.length === 0) throw refusal('holds no CSV file')
  return files
}
