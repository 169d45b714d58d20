/**
 * Values of NGSILD-Warning (GS CIM 009, 6.3.17): a code, who warns, and a text in quotes. An answer has as many of them as clients
 * take in a header, whoever and how many were asked for it.
 */
import { limits } from '#base/limits/limits.ts'

/** @param agent who warns: a word, or an address without its scheme. */
export const warningLine = (code: number, agent: string, text: string): string =>
  `${code} ${agent} "${text.replaceAll(/[^\x20-\x7e]|["\\]/g, ' ')}"`

/**
 * Each warning once, as many as fit; the last says how many there are beside them.
 * @param values of headers, each of one warning or more.
 */
export function fittingWarnings(values: readonly string[]): readonly string[] {
  // Every page of a source may warn of the same, and so may several sources of one behind them.
  const lines = [...new Set(values.flatMap((value) => value.split(/,\s*(?=\d{3} )/)))]
  let room = limits.warningsBytesMax.value
  const first = lines.findIndex((line) => {
    room -= line.length + 2
    return room < 0
  })
  if (first === -1) return lines
  return [...lines.slice(0, first), `199 - "and ${lines.length - first} more"`]
}
