/**
 * Values of NGSILD-Warning (GS CIM 009, 6.3.17): a code, the agent that warns, and a quoted text. However
 * many sources were queried, a response contains only as many as clients accept in a header.
 */
import { limits } from '#base/limits/limits.ts'

/** @param agent the agent that warns: a word, or an address without its scheme. */
export const warningLine = (code: number, agent: string, text: string): string =>
  `${code} ${agent} "${text.replaceAll(/[^\x20-\x7e]|["\\]/g, ' ')}"`

/**
 * Removes duplicate warnings and returns as many as fit; the last line counts the omitted ones.
 * @param values header values, each with one warning or more.
 */
export function fittingWarnings(values: readonly string[]): readonly string[] {
  // Every page of a source may carry the same warning, and so may several sources that share an upstream
  // source.
  const lines = [...new Set(values.flatMap((value) => value.split(/,\s*(?=\d{3} )/)))]
  let room = limits.warningsBytesMax.value
  const first = lines.findIndex((line) => {
    room -= line.length + 2
    return room < 0
  })
  if (first === -1) return lines
  return [...lines.slice(0, first), `199 - "and ${lines.length - first} more"`]
}
