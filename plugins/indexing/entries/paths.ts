/**
 * Dotted paths of q as the index reads them: each name may be an attribute, a sub-attribute of the one before, or an
 * attribute of the entity that the relationship before leads to. So `a.b.c` has several ways, and a term holds where it holds
 * by one of them; `!a.b.c` where there is nothing by any. Everything here is pure.
 */
import type { QueryPath, QueryTerm, QueryTree } from '#ngsi-ld/query/query.ts'

/** Names of attributes with their sub-attributes, in the order in which relationships lead from one to the next. */
export type Way = readonly (readonly [string, ...string[]])[]

/** The ways of a path; the shortest steps first. One that says by braces where it follows has one way. */
export function waysOf({ names, linked }: QueryPath): readonly Way[] {
  const outer = linked === undefined ? cuts(names) : [[names as readonly [string, ...string[]]]]
  if (linked === undefined) return outer
  return waysOf(linked.path).map((way) => [...outer[0]!, ...way])
}

/** All ways to cut a list of names. */
function cuts(names: readonly string[]): Way[] {
  const [first, ...rest] = names as [string, ...string[]]
  if (rest.length === 0) return [[[first]]]
  return cuts(rest).flatMap((way) => {
    const [next, ...others] = way as [readonly [string, ...string[]], ...Way]
    return [
      [[first], next, ...others],
      [[first, ...next], ...others],
    ]
  })
}

/** The tree in the standard's own words: relationships are followed by braces, and ways are joined. */
export function inBraces(tree: QueryTree): QueryTree {
  if (tree.kind === 'and' || tree.kind === 'or') {
    const parts = tree.parts.map(inBraces)
    return {
      kind: tree.kind,
      parts: parts.flatMap((part) => (part.kind === tree.kind ? part.parts : [part])),
    }
  }
  const { path } = tree
  if (path.linked !== undefined || path.names.length === 1) return tree
  const parts = waysOf(path).map((way): QueryTerm => ({ ...tree, path: pathOf(way, path.member) }))
  return { kind: tree.kind === 'absent' ? 'and' : 'or', parts }
}

function pathOf(way: Way, member: QueryPath['member']): QueryPath {
  const [names, ...rest] = way as [readonly string[], ...Way]
  if (rest.length === 0) return member === undefined ? { names } : { names, member }
  return { names, linked: { types: [], path: pathOf(rest, member) } }
}
