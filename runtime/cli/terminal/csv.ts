/**
 * CSV by RFC 4180: cells are quoted if necessary, quotes are doubled, and rows end with either kind of line
 * break. The reader is incremental, so that files of any size can be read.
 */

/** Formats a row, including its line break. */
export function csvRow(cells: readonly string[]): string {
  const quoted = cells.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell))
  return `${quoted.join()}\n`
}

export function createCsvReader() {
  let row: string[] = []
  let cell = ''
  let state: 'plain' | 'quoted' | 'after-quote' = 'plain'
  const endRow = (rows: string[][]): void => {
    row.push(cell)
    // Empty lines are skipped.
    if (row.length > 1 || cell !== '') rows.push(row)
    row = []
    cell = ''
  }
  return Object.freeze({
    /** Returns the rows that a further piece of text completes. */
    read(text: string): readonly (readonly string[])[] {
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
    /** Returns the last row, if it has no line break. */
    end(): readonly (readonly string[])[] {
      const rows: string[][] = []
      endRow(rows)
      return rows
    },
  })
}
