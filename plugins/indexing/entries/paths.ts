/**
 * Interprets dotted paths of q. Each name is an attribute, a sub-attribute of the previous name, or an
 * attribute of the entity that the previous relationship links to. So `a.b.c` has several interpretations. A
 * term holds if one of them holds; `!a.b.c` holds if none has a value. Pure functions.
 */
import type { QueryPath, QueryTerm, QueryTree } from '#ngsi-ld/query/query.ts'

/**
 * Groups of attribute and sub-attribute names, in the order in which relationships lead from one to the next.
 */
export type Way = readonly (readonly [string, ...string[]])[]

/** All interpretations of a path, shortest steps first. A path with braces has only one. */
export function waysOf({ names, linked }: QueryPath): readonly Way[] {
  const outer = linked === undefined ? cuts(names) : [[names as readonly [string, ...string[]]]]
  if (linked === undefined) return outer
  return waysOf(linked.path).map((way) => [...outer[0]!, ...way])
}

/** All ways to split a list of names into groups. */
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

/**
 * Rewrites a tree in the standard's syntax: braces follow relationships, and interpretations are combined.
 */
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
