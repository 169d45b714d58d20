/** The target of a request as its text: a place and a query, which may hold question marks and slashes of its own (RFC 3986, 3.4). */

/** Parts a target at its first question mark; the query is '' where there is none. */
export function partsOf(target: string): readonly [place: string, query: string] {
  const end = target.indexOf('?')
  return end < 0 ? [target, ''] : [target.slice(0, end), target.slice(end + 1)]
}
