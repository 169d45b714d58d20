/**
 * Splits a request target into path and query; the query may contain further question marks and slashes (RFC
 * 3986, 3.4).
 */

/** Splits a target at its first question mark; the query is '' if there is no question mark. */
export function partsOf(target: string): readonly [place: string, query: string] {
  const end = target.indexOf('?')
  return end < 0 ? [target, ''] : [target.slice(0, end), target.slice(end + 1)]
}
