/**
 * A compiled @context: user terms to canonical names (core-context.ts) and back, one look-up each. It agrees with
 * JSON-LD expansion and compaction of names under [user context, core context], with differences that keep answers
 * readable: core terms always stay themselves, type coercions of a term do not forbid its use, and the core alone
 * shows full IRIs, as they are stored.
 * Values of properties are never looked into.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { CoreVersion } from '#ngsi-ld/values/profile.ts'
import { type ContextDocuments, readTerms, type Term } from './context-terms.ts'
import {
  canonicalOf,
  coreContextUrl,
  corePrefixes,
  coreTerms,
  isCoreContextUrl,
  toIri,
} from './core-context.ts'

/**
 * Canonical name of a term, compact IRI or full IRI.
 * @param within canonical name of the attribute that the named thing is part of, where it is a sub-attribute or a value.
 */
export type Expand = (term: string, within?: string) => string

export interface Context {
  /** Same key, same meaning as long as the fetched documents stay the same: an address, or JSON text. */
  readonly key: string
  /** True when names in answers are the canonical names, so that stored text may leave as it is. */
  readonly isCore: boolean
  /** Items of the `@context` of answers, core last unless another item brings it. */
  readonly reference: readonly Json[]
  /** The one address that is enough to name it in a Link header, where there is one. */
  readonly address: string | undefined
  /** Canonical name of a term, compact IRI or full IRI. Any text has one; names.ts says which may be used. */
  readonly expand: Expand
  /** Shortest name in this context for a canonical name. */
  readonly compact: (name: string) => string
  /** Given where a request names no @context: the context of its queries, which depends on the names that are known. */
  readonly forQueries?: (isKnown: (name: string) => boolean) => QueryContext
  /** True when `@context` in answers is always an array. */
  readonly isListed?: boolean
}

/** A context in which some names mean what is known in a broker. */
export interface QueryContext extends Context {
  /** Canonical names in the default context that `expand` looked up, and whether the broker knows them. */
  readonly lookedUp: ReadonlyMap<string, boolean>
}

/** The addresses that have to be fetched before a context can be compiled. */
export interface MissingContexts {
  readonly missing: readonly string[]
}

/** The `@context` member of answers: one item stands alone, as most clients send and expect it. */
export const contextMember = ({ reference, isListed }: Pick<Context, 'reference' | 'isListed'>): Json =>
  reference.length === 1 && isListed !== true ? reference[0]! : [...reference]

/** The core alone; answers name it in the given version. */
export const createCoreContext = (version: CoreVersion, { isListed = false } = {}): Context => {
  const url = coreContextUrl(version)
  return createContext({ key: url, reference: [url], address: url, isListed }, new Map())
}

export const coreContext: Context = createCoreContext('1.9')

/**
 * Compiles what stands in `@context` or behind a Link header. Core addresses may stand anywhere in it or be absent.
 * @param core gives the core address of answers.
 * @throws ngsi-ld.bad-request-data naming the term or address at fault.
 */
export function compileContext(
  local: Json,
  documents: ContextDocuments,
  core: Context = coreContext,
): Context | MissingContexts {
  const { terms, missing, bringsCore } = readTerms(local, documents)
  if (missing.length > 0) return { missing }
  const own = withoutCore(local)
  if (own.length === 0) return core
  const address = own.length === 1 && typeof own[0] === 'string' ? own[0] : undefined
  const reference = bringsCore ? own : [...own, ...core.reference]
  const { isListed = false } = core
  return createContext({ key: address ?? JSON.stringify(own), reference, address, isListed }, terms)
}

/** Items of a local context that are not the core; what stands before a null counts no more. */
function withoutCore(local: Json): Json[] {
  const items = Array.isArray(local) ? (local.flat(limits.contextDepthMax.value) as Json[]) : [local]
  return items
    .slice(items.lastIndexOf(null) + 1)
    .filter((item) => typeof item !== 'string' || !isCoreContextUrl(item))
}

function createContext(
  {
    key,
    reference,
    address,
    isListed,
  }: Required<Pick<Context, 'key' | 'reference' | 'isListed'>> & Pick<Context, 'address'>,
  terms: ReadonlyMap<string, Term>,
): Context {
  const { expansions, compactions, prefixIris, prefixTerms } = tablesOf(terms)

  const expandAfresh = (term: string): string => {
    const known = expansions.get(term)
    if (known !== undefined) return known
    const colon = term.indexOf(':', 1)
    if (colon < 0) return coreTerms.has(term) ? term : canonicalOf(term)
    const start = term.startsWith('//', colon + 1) ? undefined : prefixIris.get(term.slice(0, colon))
    return canonicalOf(start === undefined ? term : start + term.slice(colon + 1))
  }

  const compactAfresh = (name: string): string => {
    const term = compactions.get(name)
    if (term !== undefined) return term
    if (expandAfresh(name) === name && !name.includes(':')) return name
    const iri = toIri(name)
    if (iri.length > limits.nameCharactersMax.value) return iri
    const short = cutsOf(iri)
      .flatMap((cut) => {
        const prefix = prefixTerms.get(iri.slice(0, cut))
        return prefix === undefined ? [] : [`${prefix}:${iri.slice(cut)}`]
      })
      .filter((candidate) => expandAfresh(candidate) === name)
    return short.reduce(shorter, undefined) ?? iri
  }

  return Object.freeze({
    key,
    isCore: expansions.size === 0,
    reference: Object.freeze(reference),
    address,
    ...(isListed ? { isListed } : {}),
    expand: remembered(expandAfresh),
    compact: remembered(compactAfresh),
  })
}

interface Tables {
  readonly expansions: ReadonlyMap<string, string>
  readonly compactions: ReadonlyMap<string, string>
  /** Prefix to IRI, the core's own included. */
  readonly prefixIris: ReadonlyMap<string, string>
  /** IRI to prefix, the core's own included; none under the core alone, where canonical names are shown as they are. */
  readonly prefixTerms: ReadonlyMap<string, string>
}

function tablesOf(terms: ReadonlyMap<string, Term>): Tables {
  const expansions = new Map<string, string>()
  const compactions = new Map<string, string>()
  const prefixIris = new Map(corePrefixes)
  const prefixTerms = new Map<string, string>()
  for (const [term, { iri, prefix }] of terms) {
    if (coreTerms.has(term)) continue
    const name = canonicalOf(iri)
    expansions.set(term, name)
    if (!coreTerms.has(name)) compactions.set(name, shorter(compactions.get(name), term))
    if (!prefix) continue
    prefixIris.set(term, iri)
    prefixTerms.set(iri, shorter(prefixTerms.get(iri), term))
  }
  if (expansions.size > 0)
    for (const [prefix, iri] of corePrefixes) prefixTerms.set(iri, shorter(prefixTerms.get(iri), prefix))
  return { expansions, compactions, prefixIris, prefixTerms }
}

/** Of several names for one IRI the shortest, then the first of the alphabet (JSON-LD 1.1 API, 4.3 and 6.3). */
const shorter = (a: string | undefined, b: string): string =>
  a === undefined || b.length < a.length || (b.length === a.length && b < a) ? b : a

/** Positions where an IRI may be cut into prefix and suffix: after each delimiter but the last character. */
function cutsOf(iri: string): number[] {
  const cuts: number[] = []
  for (let i = 0; i < iri.length - 1; i++) {
    if (delimiters.includes(iri[i]!)) cuts.push(i + 1)
  }
  return cuts
}

const delimiters = ':/?#[]@'

/** The function with its latest results kept: the same few names come with every request. */
export function remembered(find: (name: string) => string): (name: string) => string {
  const kept = new Map<string, string>()
  return (name) => {
    const known = kept.get(name)
    if (known !== undefined) return known
    if (name.length > limits.nameCharactersMax.value) return find(name)
    if (kept.size >= limits.contextNamesKeptMax.value) kept.clear()
    const found = find(name)
    kept.set(name, found)
    return found
  }
}
