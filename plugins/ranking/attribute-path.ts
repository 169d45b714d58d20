/**
 * Parses names and paths in weights, such as `qoi:hasQuality.qoi:completeness` or `generatedBy.@proximity`. A
 * name is short, prefixed or a full IRI. An IRI may contain dots: a dot ends it only after a `#`, or before
 * another IRI, a prefixed name or a criterion. An ambiguous IRI is written `<IRI>`. If the whole path is the
 * key of an attribute, it means that attribute.
 */
import { limits } from '#base/limits/limits.ts'

export const criteria = ['proximity', 'freshness', 'availability'] as const
/** Criteria that are computed from several attributes of an entity. */
export type Criterion = (typeof criteria)[number]

export interface RankingPath {
  /** The relationships and attributes to follow, as written. */
  readonly names: readonly string[]
  readonly criterion?: Criterion
}

/** Returns the path, or what is wrong with it. */
export function parsePath(text: string): RankingPath | { readonly mistake: string } {
  const parts: string[] = []
  for (let at = 0; at <= text.length; ) {
    const part = partAt(text, at)
    if (part === undefined)
      return { mistake: at === text.length ? 'it ends with a dot' : 'a name in it is empty' }
    parts.push(part.name)
    at += part.length + 1
  }
  if (parts.length > limits.rankingPathNamesMax.value)
    return { mistake: `it has more than ${limits.rankingPathNamesMax.value} names` }
  const criterionAt = parts.findIndex((part) => part.startsWith('@'))
  if (criterionAt === -1) return { names: parts }
  const criterion = criteria.find((known) => `@${known}` === parts[criterionAt])
  if (criterion === undefined)
    return {
      mistake: `${parts[criterionAt]} must be one of ${criteria.map((known) => `@${known}`).join(', ')}`,
    }
  if (criterionAt < parts.length - 1) return { mistake: `nothing can follow @${criterion}` }
  return { names: parts.slice(0, -1), criterion }
}

function partAt(text: string, at: number): { name: string; length: number } | undefined {
  const bracketed = match(/<([^\s<>]+)>(?=\.|$)/y, text, at)
  if (bracketed !== undefined) return { name: bracketed[1]!, length: bracketed[0].length }
  const [name] = match(iri, text, at) ?? match(/[^.]+/y, text, at) ?? []
  return name === undefined ? undefined : { name, length: name.length }
}

/** An IRI up to the dot that ends it; a fragment ends at its first dot. */
const iri =
  /(?:https?:\/\/|urn:)(?:(?!\.(?:https?:\/\/|urn:|<|@|[A-Za-z][\w-]*:[A-Za-z]))[^#])*(?:#[^.]*)?(?=\.|$)/y

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}
