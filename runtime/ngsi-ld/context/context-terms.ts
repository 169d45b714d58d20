/**
 * Parses the term definitions of a local @context: the part of JSON-LD 1.1 (4.1 and 4.2 of its processing
 * algorithms) that NGSI-LD uses. Later definitions replace earlier ones, as in JSON-LD; context.ts gives the
 * core precedence over all of them. This file fetches nothing: it reports missing documents.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract/pipeline.ts'
import { isList, isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { corePrefixes, coreTerms, defaultContextIri, isCoreContextUrl } from './core-context.ts'

export interface ContextTerm {
  /** Full IRI, or a keyword. */
  readonly iri: string
  /** Whether `term:suffix` may represent the IRI followed by the suffix. */
  readonly prefix: boolean
}

/** An IRI that ends in one of them may be a prefix (JSON-LD 1.1 API, 4.2.2). */
export const delimiters = ':/?#[]@'

/**
 * Returns the fetched document of an address, with its `@context` member; undefined if it has not been
 * fetched.
 */
export type ContextDocuments = (url: string) => Json | undefined

export interface LocalTerms {
  readonly terms: ReadonlyMap<string, ContextTerm>
  /** Addresses of documents that must be fetched first. Unless it is empty, `terms` is incomplete. */
  readonly missing: readonly string[]
  /** Whether one of the documents includes the core, so that responses need not list the core beside them. */
  readonly bringsCore: boolean
}

/** State while a local context is parsed. */
interface ParseState {
  readonly documents: ContextDocuments
  readonly missing: Set<string>
  terms: Map<string, ContextTerm>
  vocabulary: string | undefined
  loaded: number
  bringsCore: boolean
}

/** @throws ngsi-ld.bad-request-data naming a term that JSON-LD or NGSI-LD (4.4) does not allow. */
export function readTerms(context: Json, documents: ContextDocuments): LocalTerms {
  const state: ParseState = {
    documents,
    missing: new Set(),
    terms: new Map(),
    vocabulary: undefined,
    loaded: 0,
    bringsCore: false,
  }
  readContext(context, state, undefined, 0)
  return { terms: state.terms, missing: [...state.missing], bringsCore: state.bringsCore }
}

function readContext(context: Json, state: ParseState, base: string | undefined, depth: number): void {
  if (depth > limits.contextDepthMax.value) {
    throw badRequestData(
      `contexts refer to each other through more than ${limits.contextDepthMax.value} levels`,
      '@context',
    )
  }
  if (isList(context)) {
    for (const item of context) readContext(item, state, base, isList(item) ? depth + 1 : depth)
  } else if (context === null) {
    state.terms.clear()
    state.vocabulary = undefined
    state.bringsCore = false
  } else if (typeof context === 'string') {
    const url = absoluteUrl(context, base)
    if (!isCoreContextUrl(url)) readDocument(url, state, depth)
    else if (base !== undefined) state.bringsCore = true
  } else if (isObject(context)) {
    readDefinitions(context, state)
  } else {
    throw badRequestData('a context must be an address, an object or an array of them', '@context')
  }
}

function absoluteUrl(reference: string, base: string | undefined): string {
  const url = URL.canParse(reference, base) ? new URL(reference, base) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:')
    return URL.canParse(reference) ? reference : url.href
  throw badRequestData(`"${reference}" is not an http or https address`, '@context')
}

function readDocument(url: string, state: ParseState, depth: number): void {
  if (++state.loaded > limits.contextDocumentsMax.value) {
    throw badRequestData(`refers to more than ${limits.contextDocumentsMax.value} documents`, '@context')
  }
  const document = state.documents(url)
  if (document === undefined) {
    state.missing.add(url)
    return
  }
  const inside = isObject(document) ? document['@context'] : undefined
  if (inside === undefined) throw badRequestData(`the document at ${url} has no @context`, '@context')
  try {
    readContext(inside, state, url, depth + 1)
  } catch (error) {
    throw inDocument(error, url)
  }
}

/** Adds the address of the document that contains the error; only the innermost document adds it. */
function inDocument(error: unknown, url: string): unknown {
  if (!isGatewayError(error) || error.details['url'] !== undefined) return error
  const { code, message, details, cause } = error
  return new GatewayError(code, `${message} (in ${url})`, { ...details, url }, cause)
}

const ignoredKeywords = new Set([
  '@version',
  '@protected',
  '@propagate',
  '@base',
  '@language',
  '@direction',
  '@vocab',
])

/** A context object while its terms are parsed. */
interface Scope {
  readonly context: JsonObject
  readonly state: ParseState
  readonly done: Set<string>
  /** Terms whose definitions are being parsed; each depends on the next. */
  readonly open: Set<string>
}

/**
 * Rejects too many terms before they are parsed, because parsing takes long.
 * @throws ngsi-ld.bad-request-data
 */
export function checkTermCount(context: Json): void {
  if (isList(context)) context.forEach(checkTermCount)
  else if (
    isObject(context) &&
    Object.keys(context).length > limits.contextTermsMax.value + ignoredKeywords.size
  )
    throw badRequestData(`has more than ${limits.contextTermsMax.value} terms`, '@context')
}

function readDefinitions(context: JsonObject, state: ParseState): void {
  checkTermCount(context)
  const scope: Scope = { context, state, done: new Set(), open: new Set() }
  for (const keyword of Object.keys(context).filter((name) => name.startsWith('@'))) {
    if (!ignoredKeywords.has(keyword)) throw badRequestData(`${keyword} is not allowed`, '@context')
    checkKeyword(keyword, context[keyword]!, '@context')
  }
  state.vocabulary = vocabularyOf(scope)
  for (const term of Object.keys(context)) {
    if (!term.startsWith('@')) define(term, scope)
  }
}

function vocabularyOf(scope: Scope): string | undefined {
  const vocabulary = own(scope.context, '@vocab')
  if (vocabulary === undefined) return scope.state.vocabulary
  if (vocabulary === null) return undefined
  if (typeof vocabulary !== 'string') throw badRequestData('must be an IRI', '@context.@vocab')
  return vocabulary === '' ? scope.state.vocabulary : resolve(vocabulary, scope)
}

/** Parses one definition, after the definitions that it refers to. */
function define(term: string, scope: Scope): void {
  const { context, state, done, open } = scope
  if (done.has(term)) return
  const field = `@context.${term}`
  if (open.has(term)) throw badRequestData('refers to itself', field)
  if (open.size >= limits.jsonDepthMax.value)
    throw badRequestData('terms refer to each other through too many levels', field)
  open.add(term)
  const definition = definitionOf(context[term]!, field)
  state.terms.delete(term)
  const iri = definition.id === null || isUnsafe(term) ? null : iriOf(term, definition.id, scope)
  if (iri !== null) {
    const prefix = definition.prefix ?? (iri.startsWith('_:') || delimiters.includes(iri.at(-1)!))
    state.terms.set(term, { iri, prefix: prefix && !/[:/]/.test(term) })
    if (state.terms.size > limits.contextTermsMax.value) {
      throw badRequestData(`has more than ${limits.contextTermsMax.value} terms`, '@context')
    }
  }
  open.delete(term)
  done.add(term)
}

/** Such a term could not be a member name of any object. */
const isUnsafe = (term: string): boolean => term === '' || term === '__proto__'

/** A keyword's value is a text, number, boolean or list of them: nothing in a context is deeply nested. */
function checkKeyword(keyword: string, value: Json, field: string): void {
  if (!keyword.startsWith('@')) throw badRequestData(`${keyword} is not a keyword`, field)
  const plain = (one: Json): boolean =>
    typeof one !== 'object' && (typeof one !== 'number' || Number.isFinite(one))
  const allowed = value === null || (isList(value) ? value.every(plain) : plain(value))
  if (!allowed)
    throw badRequestData('must be a text, a number, a boolean or a list of them', `${field}.${keyword}`)
}

interface Definition {
  /** The defined IRI; null removes the term; undefined expands the term itself. */
  readonly id: string | null | undefined
  /** Set by an expanded definition; undefined if the IRI determines it. */
  readonly prefix: boolean | undefined
}

function definitionOf(definition: Json, field: string): Definition {
  if (definition === null || typeof definition === 'string') return { id: definition, prefix: undefined }
  if (!isObject(definition)) throw badRequestData('a definition must be an IRI or an object', field)
  if (Object.hasOwn(definition, '@context')) throw badRequestData('scoped contexts are not allowed', field)
  if (Object.hasOwn(definition, '@reverse')) throw badRequestData('@reverse is not allowed', field)
  for (const [keyword, value] of Object.entries(definition)) checkKeyword(keyword, value, field)
  const id = own(definition, '@id')
  if (id !== undefined && id !== null && typeof id !== 'string')
    throw badRequestData('must be an IRI', `${field}.@id`)
  return { id, prefix: own(definition, '@prefix') === true }
}

/** The IRI of a term; null for keywords that NGSI-LD does not use. */
function iriOf(term: string, id: string | undefined, scope: Scope): string | null {
  if (id === undefined || id === term) return itself(term, scope)
  const iri = resolve(id, scope)
  return iri.startsWith('@') && iri !== '@id' && iri !== '@type' ? null : iri
}

/**
 * Expands a term that is defined without an IRI and looks like a compact one. Its prefix may be any term,
 * while other names accept only terms that may be prefixes [JSON-LD 1.1 API, 4.2.2].
 */
function itself(term: string, scope: Scope): string {
  const alone = standalone(term, scope)
  const colon = term.indexOf(':', 1)
  const suffix = term.slice(colon + 1)
  if (colon < 0 || suffix.startsWith('//')) return alone
  const start = scope.state.terms.get(term.slice(0, colon))?.iri
  return start === undefined || start.startsWith('@') ? alone : start + suffix
}

/** Expands a full IRI, compact IRI, term or bare name inside a context to a full IRI. */
function resolve(value: string, scope: Scope): string {
  if (value.startsWith('@')) return value
  if (Object.hasOwn(scope.context, value)) define(value, scope)
  return scope.state.terms.get(value)?.iri ?? standalone(value, scope)
}

/** As `resolve`, for names that are not terms: the core's own terms and prefixes always apply. */
function standalone(value: string, scope: Scope): string {
  const colon = value.indexOf(':', 1)
  if (colon < 0) return coreTerms.get(value) ?? (scope.state.vocabulary ?? defaultContextIri) + value
  const prefix = value.slice(0, colon)
  const suffix = value.slice(colon + 1)
  if (prefix === '_' || suffix.startsWith('//')) return value
  if (Object.hasOwn(scope.context, prefix)) define(prefix, scope)
  const term = scope.state.terms.get(prefix)
  const start = term === undefined ? corePrefixes.get(prefix) : term.prefix ? term.iri : undefined
  return start === undefined ? value : start + suffix
}
