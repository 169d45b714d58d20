/**
 * The columns that the families of a virtual sensor predict from: the sources' values of a slot, their
 * values one slot earlier, and the hour of the day as Fourier terms. A missing value is NaN. Pure.
 */

const dayMs = 86_400_000
export const harmonics = 3
/** How many earlier slots stand in a row. */
export const lagCount = 1

/** Columns of a row, by the number of sources: values, then earlier values, then hours. */
export const columnsOf = (sources: number) => ({
  values: range(0, sources),
  lags: range(sources, sources * lagCount),
  hours: range(sources * (1 + lagCount), 2 * harmonics),
  width: sources * (1 + lagCount) + 2 * harmonics,
})

/** `valueAt(source, lag)` is the value of a source `lag` slots before, NaN if missing. */
export function featureRow(
  sources: number,
  at: number,
  valueAt: (source: number, lag: number) => number,
): Float64Array {
  const { width, hours } = columnsOf(sources)
  const row = new Float64Array(width)
  for (let lag = 0; lag <= lagCount; lag++) {
    for (let source = 0; source < sources; source++) row[lag * sources + source] = valueAt(source, lag)
  }
  const angle = (2 * Math.PI * (at % dayMs)) / dayMs
  for (let order = 1; order <= harmonics; order++) {
    row[hours[2 * order - 2]!] = Math.sin(order * angle)
    row[hours[2 * order - 1]!] = Math.cos(order * angle)
  }
  return row
}

/** The row with the square roots of all values, also of a target at the end; hours stay as they are. */
export function rootRow(row: Float64Array, sources: number): Float64Array {
  const [firstHour, width] = [sources * (1 + lagCount), sources * (1 + lagCount) + 2 * harmonics]
  const roots = row.slice()
  for (let column = 0; column < row.length; column++)
    if (column < firstHour || column >= width) roots[column] = Math.sqrt(Math.max(0, row[column]!))
  return roots
}

/** Where in the day a time falls, of `bins` equal parts. */
export const binOfDay = (at: number, bins: number): number =>
  Math.min(bins - 1, Math.floor((((at % dayMs) + dayMs) % dayMs) / (dayMs / bins)))

/** How many slots make a day, at most one per five minutes. */
export const dayBinsOf = (slotMs: number): number => Math.max(1, Math.min(288, Math.floor(dayMs / slotMs)))

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i)
