/**
 * The scopeQ language (GS CIM 009, 4.19): scopes joined by `;` (all, binds tighter) and `|` or `,` (any),
 * with parentheses. Within a scope, `+` matches any one level; a final `/#` matches the scope and all scopes
 * below it; `/#` alone matches every scope.
 */
import { limits } from '#base/limits/limits.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { badRequestData, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export type ScopeQuery =
  | { readonly kind: 'and'; readonly parts: readonly ScopeQuery[] }
  | { readonly kind: 'or'; readonly parts: readonly ScopeQuery[] }
  | { readonly kind: 'scope'; readonly levels: readonly string[]; readonly below: boolean }

const term = /^(?:\/(?:[\p{L}\p{N}_-]+|\+))*(?:\/#)?$/u

/** @throws ngsi-ld.bad-request-data, ngsi-ld.too-complex */
export function parseScopeQuery(text: string): ScopeQuery {
  const tokens = text.match(/[^\s,;|()]+|[,;|()]/g) ?? []
  if (tokens.length > 2 * limits.queryTermsMax.value) throw tooComplex('scopeQ has too many terms')
  let at = 0
  const parseAny = (depth: number): ScopeQuery => {
    if (depth > limits.queryNestingMax.value) throw tooComplex('scopeQ has too many levels of parentheses')
    const parts = [parseAll(depth)]
    while (tokens[at] === '|' || tokens[at] === ',') {
      at++
      parts.push(parseAll(depth))
    }
    return parts.length === 1 ? parts[0]! : { kind: 'or', parts }
  }
  const parseAll = (depth: number): ScopeQuery => {
    const parts = [parseOne(depth)]
    while (tokens[at] === ';') {
      at++
      parts.push(parseOne(depth))
    }
    return parts.length === 1 ? parts[0]! : { kind: 'and', parts }
  }
  const parseOne = (depth: number): ScopeQuery => {
    const token = tokens[at++] ?? ''
    if (token === '(') {
      const inner = parseAny(depth + 1)
      if (tokens[at++] !== ')') throw badRequestData(`missing ) in "${text}"`, 'scopeQ')
      return inner
    }
    if (token === '' || !term.test(token)) throw badRequestData(`expected a scope in "${text}"`, 'scopeQ')
    const levels = token.slice(1).split('/')
    const below = levels.at(-1) === '#'
    return { kind: 'scope', levels: below ? levels.slice(0, -1) : levels, below }
  }
  const query = parseAny(0)
  if (at < tokens.length) throw badRequestData(`unexpected ${tokens[at]} in "${text}"`, 'scopeQ')
  return query
}

/** The query as text; parsing the text returns an equal query. */
export function printScopeQuery(query: ScopeQuery): string {
  if (query.kind === 'scope') return `/${[...query.levels, ...(query.below ? ['#'] : [])].join('/')}`
  const print = (part: ScopeQuery): string =>
    part.kind === 'scope' ? printScopeQuery(part) : `(${printScopeQuery(part)})`
  return query.parts.map(print).join(query.kind === 'and' ? ';' : '|')
}

/** Whether the scopes of an entity satisfy the query; different scopes may satisfy different terms. */
export function matchesScope(query: ScopeQuery, scope: string | readonly string[] | undefined): boolean {
  if (query.kind === 'and') return query.parts.every((part) => matchesScope(part, scope))
  if (query.kind === 'or') return query.parts.some((part) => matchesScope(part, scope))
  return (scope === undefined ? [] : listOf(scope)).some((path) => {
    const levels = path.slice(1).split('/')
    const fits = query.below ? levels.length >= query.levels.length : levels.length === query.levels.length
    return fits && query.levels.every((level, index) => level === '+' || level === levels[index])
  })
}
