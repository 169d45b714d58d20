/**
 * A compiled @context: maps user terms to canonical names (core-context.ts) and back with one look-up each.
 * It expands and compacts names like JSON-LD with [user context, core context], with three differences that
 * keep responses readable. Core terms are never renamed; a term's type coercions do not restrict its use; the
 * core context alone does not abbreviate full IRIs. Values of properties are not expanded.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { CoreVersion } from '#ngsi-ld/values/profile.ts'
import {
  type ContextDocuments,
  type ContextTerm,
  delimiters,
  type LocalTerms,
  readTerms,
} from './context-terms.ts'
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
 * @param within canonical name of the attribute that contains the named sub-attribute or value, if any.
 */
export type Expand = (term: string, within?: string) => string

export interface Context {
  /** Equal keys mean equal contexts while the fetched documents are unchanged: an address, or JSON text. */
  readonly key: string
  /** True if names in responses are the canonical names, so that stored text needs no conversion. */
  readonly isCore: boolean
  /** Items of the `@context` of responses; the core is last unless another item includes it. */
  readonly reference: readonly Json[]
  /** The single address that identifies this context in a Link header, if there is one. */
  readonly address: string | undefined
  /**
   * Canonical name of a term, compact IRI or full IRI. Every text has one; names.ts decides which are
   * allowed.
   */
  readonly expand: Expand
  /** Shortest name in this context for a canonical name. */
  readonly compact: (name: string) => string
  /**
   * Set if the request specifies no @context: creates the context of its queries, which depends on the known
   * names.
   */
  readonly forQueries?: (isKnown: (name: string) => boolean) => QueryContext
  /** True if `@context` in responses is always an array. */
  readonly isListed?: boolean
  /** Approximate bytes in memory. */
  readonly bytes: number
}

/** A context in which the meaning of some names depends on the names known to the broker. */
export interface QueryContext extends Context {
  /** Canonical names in the default context that `expand` looked up, and whether the broker knows them. */
  readonly lookedUp: ReadonlyMap<string, boolean>
}

/** The addresses to fetch before a context can be compiled. */
export interface MissingContexts {
  readonly missing: readonly string[]
}

/**
 * The `@context` member of responses: a single item is not wrapped in an array, as most clients send and
 * expect.
 */
export const contextMember = ({ reference, isListed }: Pick<Context, 'reference' | 'isListed'>): Json =>
  reference.length === 1 && isListed !== true ? reference[0]! : [...reference]

/** Memory of a context beside its terms: its key, closures and the names that it caches. */
const contextBytes = 16_384
/** Memory of a term beside its characters: two strings, and entries of up to four maps. */
const termBytes = 200

/** The core context alone, with the address of the given version in responses. */
export const createCoreContext = (version: CoreVersion, { isListed = false } = {}): Context => {
  const url = coreContextUrl(version)
  return createContext({ key: url, reference: [url], address: url, isListed }, new Map())
}

export const coreContext: Context = createCoreContext('1.9')

/**
 * Compiles the value of `@context` or of a Link header. It may contain core addresses at any position, or
 * none.
 * @param core provides the core address of responses.
 * @throws ngsi-ld.bad-request-data naming the invalid term or address.
 */
export function compileContext(
  local: Json,
  documents: ContextDocuments,
  core: Context = coreContext,
): Context | MissingContexts {
  const found = readTerms(local, documents)
  return found.missing.length > 0 ? { missing: found.missing } : contextOf(local, found, core)
}

/** The second half of `compileContext`, for terms that were read completely. */
export function contextOf(local: Json, { terms, bringsCore }: LocalTerms, core: Context): Context {
  const own = withoutCore(local)
  if (own.length === 0) return core
  const address = own.length === 1 && typeof own[0] === 'string' ? own[0] : undefined
  const reference = bringsCore ? own : [...own, ...core.reference]
  const { isListed = false } = core
  return createContext({ key: address ?? JSON.stringify(own), reference, address, isListed }, terms)
}

/** Items of a local context except the core; a null discards all items before it. */
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
  terms: ReadonlyMap<string, ContextTerm>,
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
    bytes: bytesOf(terms),
  })
}

function bytesOf(terms: ReadonlyMap<string, ContextTerm>): number {
  let bytes = contextBytes
  for (const [term, { iri }] of terms) bytes += termBytes + term.length + iri.length
  return bytes
}

interface Tables {
  readonly expansions: ReadonlyMap<string, string>
  readonly compactions: ReadonlyMap<string, string>
  /** Prefix to IRI, including the core's own prefixes. */
  readonly prefixIris: ReadonlyMap<string, string>
  /**
   * IRI to prefix, including the core's own; empty for the core context alone, which shows canonical names
   * unchanged.
   */
  readonly prefixTerms: ReadonlyMap<string, string>
}

function tablesOf(terms: ReadonlyMap<string, ContextTerm>): Tables {
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

/**
 * The shorter of two names for one IRI; if equally long, the alphabetically first (JSON-LD 1.1 API, 4.3 and
 * 6.3).
 */
const shorter = (a: string | undefined, b: string): string =>
  a === undefined || b.length < a.length || (b.length === a.length && b < a) ? b : a

/** Positions at which an IRI may be split into prefix and suffix: after each delimiter except at the end. */
function cutsOf(iri: string): number[] {
  const cuts: number[] = []
  for (let i = 0; i < iri.length - 1; i++) {
    if (delimiters.includes(iri[i]!)) cuts.push(i + 1)
  }
  return cuts
}

/** Caches the latest results of a function, because most requests use the same few names. */
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
