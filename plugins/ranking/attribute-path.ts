/**
 * Names and paths in weights, such as `qoi:hasQuality.qoi:completeness` or `generatedBy.@proximity`. A name may be short,
 * prefixed or a full IRI, which may hold dots: within one, a dot ends it only behind a `#`, in front of another IRI, a prefixed
 * name or a criterion. What may be read otherwise is written `<IRI>`. A path that is the key of an attribute as a
 * whole means that attribute.
 */
import { limits } from '#base/limits/limits.ts'

export const criteria = ['proximity', 'freshness', 'availability'] as const
/** What is reckoned from several attributes of an entity. */
export type Criterion = (typeof criteria)[number]

export interface RankingPath {
  /** As written; the relationships and attributes to follow. */
  readonly names: readonly string[]
  readonly criterion?: Criterion
}

/** The path, or what is wrong with it. */
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
  const reckoned = parts.findIndex((part) => part.startsWith('@'))
  if (reckoned === -1) return { names: parts }
  const criterion = criteria.find((known) => `@${known}` === parts[reckoned])
  if (criterion === undefined)
    return { mistake: `${parts[reckoned]} is none of ${criteria.map((known) => `@${known}`).join(', ')}` }
  if (reckoned < parts.length - 1) return { mistake: `nothing can follow @${criterion}` }
  return { names: parts.slice(0, -1), criterion }
}

function partAt(text: string, at: number): { name: string; length: number } | undefined {
  const bracketed = match(/<([^\s<>]+)>(?=\.|$)/y, text, at)
  if (bracketed !== undefined) return { name: bracketed[1]!, length: bracketed[0].length }
  const [name] = match(iri, text, at) ?? match(/[^.]+/y, text, at) ?? []
  return name === undefined ? undefined : { name, length: name.length }
}

/** Up to a dot that ends it; a fragment ends with the first one. */
const iri =
  /(?:https?:\/\/|urn:)(?:(?!\.(?:https?:\/\/|urn:|<|@|[A-Za-z][\w-]*:[A-Za-z]))[^#])*(?:#[^.]*)?(?=\.|$)/y

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}
