/**
 * Parses payloads other than JSON: one value (`21.5`, `21.5 °C`, `ON`), named values (`temperature 21.5`,
 * `t=21.5;h=40`), and CSV lines with or without a header. Pure and defined for every input: bounded
 * expressions on bounded text.
 */
import { type Parsed, readingsMax } from '#contract'
import { asNumber, type ReadingScalar } from './value-rules.ts'

/**
 * The content of a payload, with the units written after values, by name; '' is the name of a single value.
 */
export type PlainContent =
  | { readonly kind: 'value'; readonly value: ReadingScalar; readonly units: Units }
  | { readonly kind: 'record'; readonly record: PlainTextRow; readonly units: Units }
  | { readonly kind: 'rows'; readonly rows: readonly (PlainTextRow | undefined)[] }

export type Units = ReadonlyMap<string, string>
export type PlainTextRow = Readonly<Record<string, ReadingScalar | null>>

const number = String.raw`[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,3})?`
const unit = String.raw`[^\s\d=:,;]{1,16}`
const measured = new RegExp(`^(${number})\\s{0,4}(${unit})$`, 'u')
const word = /^[^\s\p{Cc}\p{Cf},;=:{}[\]"]{1,64}$/u
const name = String.raw`[A-Za-z_][\w./-]{0,63}`
const pair = new RegExp(
  `^(${name})\\s{0,4}[=:]\\s{0,4}(?:(${number})\\s{0,4}(${unit})?|([A-Za-z]{1,32}))$`,
  'u',
)
const spaced = new RegExp(`^(${name})\\s{1,4}(?:(${number})\\s{0,4}(${unit})?|(nan|on|off))$`, 'iu')
const separators = [';', '\t', ',']
/** A line with more cells is not sensor data. */
const cellsMax = 256

/** @param columns declared names of the cells, if any; `-` omits a cell */
export function plainOf(
  text: string,
  columns: readonly string[] | undefined,
  isTable: boolean,
): Parsed<PlainContent> {
  const trimmed = text.trim()
  if (columns !== undefined || isTable) return tableOf(trimmed, columns)
  const single = singleOf(trimmed) ?? pairsOf(trimmed)
  if (single !== undefined) return { value: single }
  const table = separators.some((one) => trimmed.includes(one)) ? tableOf(trimmed, undefined) : undefined
  // Prose contains commas, too: undeclared CSV must have a number in each line.
  const hasNumbers = (row: PlainTextRow): boolean =>
    Object.values(row).some((cell) => typeof cell === 'number')
  const rows = table?.value?.kind === 'rows' ? table.value.rows.filter((row) => row !== undefined) : []
  if (rows.length > 0 && rows.every(hasNumbers)) return table!
  return { reason: 'neither JSON nor a value, named values or lines of CSV' }
}

function singleOf(text: string): PlainContent | undefined {
  if (text.length > 64) return undefined
  const none: Units = new Map()
  const value = asNumber(text)
  if (typeof value === 'number') return { kind: 'value', value, units: none }
  const [, amount, written] = measured.exec(text) ?? []
  if (amount !== undefined) return { kind: 'value', value: Number(amount), units: new Map([['', written!]]) }
  return word.test(text) ? { kind: 'value', value: text, units: none } : undefined
}

/** Named values separated by line ends, semicolons or commas; also by spaces if each has an equals sign. */
function pairsOf(text: string): PlainContent | undefined {
  const parts = text.split(/[\n;,]/, readingsMax + 1).map((part) => part.trim())
  const filled = parts.filter((part) => part !== '')
  return recordOf(filled) ?? (filled.length === 1 ? recordOf(text.split(/\s+/, readingsMax + 1)) : undefined)
}

function recordOf(parts: readonly string[]): PlainContent | undefined {
  if (parts.length === 0 || parts.length > readingsMax) return undefined
  const record: Record<string, ReadingScalar> = Object.create(null) as Record<string, ReadingScalar>
  const units = new Map<string, string>()
  for (const part of parts) {
    if (part.length > 128) return undefined
    const [, key, amount, written, text] = pair.exec(part) ?? spaced.exec(part) ?? []
    if (key === undefined) return undefined
    record[key] = amount === undefined ? text! : Number(amount)
    if (written !== undefined) units.set(key, written)
  }
  return { kind: 'record', record, units }
}

function tableOf(text: string, declared: readonly string[] | undefined): Parsed<PlainContent> {
  const lines = text.split('\n', readingsMax + 2).map((line) => line.trim())
  const filled = lines.filter((line) => line !== '')
  const separator = separators.find((one) => filled[0]!.includes(one)) ?? ','
  const cells = filled.map((line) => cellsOf(line, separator))
  const first = cells[0]!
  const isHeader = declared === undefined ? cells.length > 1 && isNames(first) : isSame(first, declared)
  const names = declared ?? (isHeader ? first : first.map((_, at) => `column${at + 1}`))
  const rows = (isHeader ? cells.slice(1) : cells).map((line) => rowOf(line, names, separator))
  if (rows.length > readingsMax) return { reason: `more than ${readingsMax} lines in one frame` }
  return { value: { kind: 'rows', rows } }
}

const cellsOf = (line: string, separator: string): string[] =>
  line.split(separator, cellsMax + 1).map((cell) => cell.trim().replace(/^"([^"]*)"$/, '$1'))

const isNames = (cells: readonly string[]): boolean =>
  cells.every((cell) => /^[^\d\s.+-]/.test(cell)) && new Set(cells).size === cells.length

const isSame = (cells: readonly string[], names: readonly string[]): boolean =>
  cells.length === names.length && cells.every((cell, at) => cell.toLowerCase() === names[at]!.toLowerCase())

/** Undefined if the number of cells does not match. */
function rowOf(
  cells: readonly string[],
  names: readonly string[],
  separator: string,
): PlainTextRow | undefined {
  if (cells.length !== names.length) return undefined
  const row: Record<string, ReadingScalar | null> = Object.create(null) as Record<
    string,
    ReadingScalar | null
  >
  for (const [at, cell] of cells.entries()) {
    if (names[at] === '-') continue
    const decimal = separator === ',' ? cell : cell.replace(/^([-+]?\d{1,20}),(\d{1,20})$/, '$1.$2')
    row[names[at]!] = cell === '' ? null : asNumber(decimal)
  }
  return row
}
