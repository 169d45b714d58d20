/**
 * Parses the histories of the original fault detection: one CSV file per sensor. Its name is the id of the
 * Sensor, with an underscore for each colon. After a header, each line has an ISO time and a value. Pure, and
 * incremental, so that files of any size can be read.
 */
import { numberOf, timeOf, unquoted } from './series.ts'

export interface PastReading {
  /** Ms since 1970. */
  readonly time: number
  readonly value: number
}

export interface Malformed {
  /** Number of the line in its file, from 1. */
  readonly line: number
  readonly reason: string
}

export type HistoryLine = PastReading | Malformed

/** Longest line that is read, characters. */
const lineMax = 10_000

/** The name of the file of a Sensor, without extension. */
export const historyName = (sensorId: string): string => sensorId.replaceAll(':', '_')

export function createHistoryReader() {
  let rest = ''
  let line = 0

  const linesOf = (texts: readonly string[]): HistoryLine[] =>
    texts.flatMap((text): readonly HistoryLine[] => {
      line++
      return text.trim() === '' ? [] : parse(text, line)
    })

  return Object.freeze({
    /** The lines that a further piece of text completes. */
    read(piece: string): readonly HistoryLine[] {
      const texts = (rest + piece).split('\n')
      // A line that is too long is reported at its end.
      rest = texts.pop()!.slice(0, lineMax + 1)
      return linesOf(texts)
    },
    /** The last line, if it has no line break. */
    end(): readonly HistoryLine[] {
      const texts = [rest]
      rest = ''
      return linesOf(texts)
    },
  })
}

function parse(text: string, line: number): readonly HistoryLine[] {
  if (text.length > lineMax) return [{ line, reason: `is longer than ${lineMax} characters` }]
  const [first = '', second] = text.split(',').map(unquoted)
  const time = timeOf(first)
  const value = numberOf(second)
  if (time !== undefined && value !== undefined) return [{ time, value }]
  if (line === 1 && time === undefined && value === undefined && second !== undefined) return []
  if (second === undefined)
    return [{ line, reason: `needs a time and a value, separated by a comma: ${shown(text)}` }]
  if (time === undefined)
    return [{ line, reason: `the first column must be an ISO time, got ${shown(first)}` }]
  return [{ line, reason: `the second column must be a number, got ${shown(second)}` }]
}

const shown = (text: string): string => JSON.stringify(text.trim().slice(0, 60))
