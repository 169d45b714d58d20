/**
 * Rows for the numbers of stream records, in blocks that many records share. Arrays and numbers of its own
 * would cost each record 350 bytes more. The row of a stream that was deleted serves another one.
 */
import { bins } from './day-table.ts'
import { unrated } from './rating.ts'
import { clearTimes } from './recent-times.ts'
import type { StreamRecord } from './stream-record.ts'
import { tableSize } from './time-slots.ts'

/** Members that are saved and are one number each, NaN in the row while undefined. */
export const savedNumbers = [
  'count',
  'firstAt',
  'lastAt',
  'committedAt',
  'intervalMs',
  'delayMs',
  'meanDelayMs',
  'plausibility',
  'completeness',
  'frequency',
  'timeliness',
  'inferred',
  'concordance',
  'ratedConcordance',
  'shortest',
  'origin',
  'newestAt',
] as const satisfies readonly (keyof StreamRecord)[]

const numberNames = [
  ...savedNumbers,
  ...(['linksAt', 'writtenAt', 'silentAt', 'dueAt', 'compared'] satisfies (keyof StreamRecord)[]),
]
/** The last one is `isPlausible`. */
const rowNumbers = numberNames.length + 1
const rowsPerBlock = 64

interface Row {
  readonly numbers: Float64Array
  readonly table: Float32Array
  readonly received: Uint16Array
  /** Number of the row in its block. */
  readonly row: number
}

/** A record that reads and writes a row. */
class RowRecord implements Row {
  numbers: Float64Array
  table: Float32Array
  received: Uint16Array
  row: number
  rare: Float32Array | undefined = undefined

  constructor({ numbers, table, received, row }: Row) {
    this.numbers = numbers
    this.table = table
    this.received = received
    this.row = row
  }

  get first(): number {
    return this.row * tableSize
  }

  get firstBin(): number {
    return this.row * bins
  }

  get isPlausible(): boolean | undefined {
    const stored = this.numbers[this.row * rowNumbers + numberNames.length]!
    return Number.isNaN(stored) ? undefined : stored === 1
  }

  set isPlausible(value: boolean | undefined) {
    this.numbers[this.row * rowNumbers + numberNames.length] = Number(value)
  }

  static {
    for (const [i, name] of numberNames.entries())
      Object.defineProperty(RowRecord.prototype, name, {
        get(this: RowRecord): number | undefined {
          const stored = this.numbers[this.row * rowNumbers + i]!
          return Number.isNaN(stored) ? undefined : stored
        },
        set(this: RowRecord, value: number | undefined) {
          this.numbers[this.row * rowNumbers + i] = value ?? Number.NaN
        },
      })
  }
}

export interface RecordRows {
  /** A record without observations. */
  create(): StreamRecord
  /** Ends a record: its row serves another one. It keeps its numbers for who still has it. */
  release(record: StreamRecord): void
}

export function createRecordRows(): RecordRows {
  const free: Row[] = []

  return Object.freeze({
    create() {
      if (free.length === 0) free.push(...newBlock(rowsPerBlock))
      const row = free.pop()!
      row.received.fill(0, row.row * bins, (row.row + 1) * bins)
      row.numbers.fill(Number.NaN, row.row * rowNumbers, (row.row + 1) * rowNumbers)
      // Its members are accessors that TypeScript does not see.
      const record = new RowRecord(row) as unknown as StreamRecord
      clearTimes(record)
      record.count = 0
      record.inferred = 0
      record.writtenAt = Number.NEGATIVE_INFINITY
      record.plausibility = unrated
      record.completeness = unrated
      record.frequency = unrated
      record.timeliness = unrated
      return record
    },
    release(record) {
      const { numbers, table, received, row } = record as unknown as RowRecord
      free.push({ numbers, table, received, row })
      Object.assign(record, {
        numbers: numbers.slice(row * rowNumbers, (row + 1) * rowNumbers),
        table: table.slice(row * tableSize, (row + 1) * tableSize),
        received: received.slice(row * bins, (row + 1) * bins),
        row: 0,
      } satisfies Row)
    },
  } satisfies RecordRows)
}

function newBlock(rows: number): Row[] {
  const numbers = new Float64Array(rows * rowNumbers)
  const table = new Float32Array(rows * tableSize)
  const received = new Uint16Array(rows * bins)
  return Array.from({ length: rows }, (_, row) => ({ numbers, table, received, row }))
}
