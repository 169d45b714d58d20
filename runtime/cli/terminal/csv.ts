/**
 * CSV as RFC 4180 has it: cells in quotes where they need them, quotes doubled, rows ended by a line break of either
 * kind. Reading goes piece by piece, so that a file of any size may come.
 */

/** One row, ended. */
export function csvRow(cells: readonly string[]): string {
  const quoted = cells.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell))
  return `${quoted.join()}\n`
}

export interface CsvReader {
  /** The rows that a further piece of text completes. */
  read(text: string): readonly (readonly string[])[]
  /** The last row, where no line break ended it. */
  end(): readonly (readonly string[])[]
}

export function createCsvReader(): CsvReader {
  let row: string[] = []
  let cell = ''
  let state: 'plain' | 'quoted' | 'after-quote' = 'plain'
  const endRow = (rows: string[][]): void => {
    row.push(cell)
    // A line without anything in it is no row.
    if (row.length > 1 || cell !== '') rows.push(row)
    row = []
    cell = ''
  }
  return Object.freeze({
    read(text) {
      const rows: string[][] = []
      for (const character of text) {
        if (state === 'quoted') {
          if (character === '"') state = 'after-quote'
          else cell += character
        } else if (character === '"') {
          if (state === 'after-quote') cell += character
          state = 'quoted'
        } else {
          state = 'plain'
          if (character === ',') {
            row.push(cell)
            cell = ''
          } else if (character === '\n') endRow(rows)
          else if (character !== '\r') cell += character
        }
      }
      return rows
    },
    end() {
      const rows: string[][] = []
      endRow(rows)
      return rows
    },
  } satisfies CsvReader)
}
