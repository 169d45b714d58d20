/**
 * Reads the term definitions out of a local @context: the part of JSON-LD 1.1 (4.1 and 4.2 of its processing
 * algorithms) that NGSI-LD uses. Later definitions replace earlier ones, as JSON-LD has it; that the core wins
 * over all of them is not decided here. Nothing is fetched: what is missing is reported.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract/pipeline.ts'
import { isList, isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { corePrefixes, coreTerms, defaultContextIri, isCoreContextUrl } from './core-context.ts'

export interface Term {
  /** Full IRI, or a keyword. */
  readonly iri: string
  /** Whether `term:suffix` may stand for the IRI followed by the suffix. */
  readonly prefix: boolean
}

/** Gives the fetched document of an address, with its `@context` member; undefined when there is none yet. */
export type ContextDocuments = (url: string) => Json | undefined

export interface LocalTerms {
  readonly terms: ReadonlyMap<string, Term>
  /** Addresses whose documents are needed first. When there are any, `terms` is incomplete. */
  readonly missing: readonly string[]
  /** Whether one of the documents brings the core, so that it need not be named beside them. */
  readonly bringsCore: boolean
}

/** Terms of a local context as read so far. */
interface Reading {
  readonly documents: ContextDocuments
  readonly missing: Set<string>
  terms: Map<string, Term>
  vocabulary: string | undefined
  loaded: number
  bringsCore: boolean
}

/** @throws ngsi-ld.bad-request-data for what JSON-LD or NGSI-LD (4.4) does not allow, naming the term. */
export function readTerms(context: Json, documents: ContextDocuments): LocalTerms {
  const reading: Reading = {
    documents,
    missing: new Set(),
    terms: new Map(),
    vocabulary: undefined,
    loaded: 0,
    bringsCore: false,
  }
  readContext(context, reading, undefined, 0)
  return { terms: reading.terms, missing: [...reading.missing], bringsCore: reading.bringsCore }
}

function readContext(context: Json, reading: Reading, base: string | undefined, depth: number): void {
  if (depth > limits.contextDepthMax.value) {
    throw badRequestData(
      `contexts name each other more than ${limits.contextDepthMax.value} deep`,
      '@context',
    )
  }
  if (isList(context)) {
    for (const item of context) readContext(item, reading, base, isList(item) ? depth + 1 : depth)
  } else if (context === null) {
    reading.terms.clear()
    reading.vocabulary = undefined
    reading.bringsCore = false
  } else if (typeof context === 'string') {
    const url = absoluteUrl(context, base)
    if (!isCoreContextUrl(url)) readDocument(url, reading, depth)
    else if (base !== undefined) reading.bringsCore = true
  } else if (isObject(context)) {
    readDefinitions(context, reading)
  } else {
    throw badRequestData('a context is an address, an object or an array of them', '@context')
  }
}

function absoluteUrl(reference: string, base: string | undefined): string {
  const url = URL.canParse(reference, base) ? new URL(reference, base) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:')
    return URL.canParse(reference) ? reference : url.href
  throw badRequestData(`"${reference}" is not an http or https address`, '@context')
}

function readDocument(url: string, reading: Reading, depth: number): void {
  if (++reading.loaded > limits.contextDocumentsMax.value) {
    throw badRequestData(`more than ${limits.contextDocumentsMax.value} documents`, '@context')
  }
  const document = reading.documents(url)
  if (document === undefined) {
    reading.missing.add(url)
    return
  }
  const inside = isObject(document) ? document['@context'] : undefined
  if (inside === undefined) throw badRequestData(`the document at ${url} has no @context`, '@context')
  try {
    readContext(inside, reading, url, depth + 1)
  } catch (error) {
    throw inDocument(error, url)
  }
}

/** The error with the address of the document it was found in, told once: by the document itself. */
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

/** One context object while its terms are read. */
interface Scope {
  readonly context: JsonObject
  readonly reading: Reading
  readonly done: Set<string>
  /** Terms whose definitions are being read, each because the one before needs it. */
  readonly open: Set<string>
}

/** Refused before they are read: reading many takes long. @throws ngsi-ld.bad-request-data */
export function checkTermCount(context: Json): void {
  if (isList(context)) context.forEach(checkTermCount)
  else if (
    isObject(context) &&
    Object.keys(context).length > limits.contextTermsMax.value + ignoredKeywords.size
  )
    throw badRequestData(`more than ${limits.contextTermsMax.value} terms`, '@context')
}

function readDefinitions(context: JsonObject, reading: Reading): void {
  checkTermCount(context)
  const scope: Scope = { context, reading, done: new Set(), open: new Set() }
  for (const keyword of Object.keys(context).filter((name) => name.startsWith('@'))) {
    if (!ignoredKeywords.has(keyword)) throw badRequestData(`${keyword} is not allowed`, '@context')
    checkKeyword(keyword, context[keyword]!, '@context')
  }
  reading.vocabulary = vocabularyOf(scope)
  for (const term of Object.keys(context)) {
    if (!term.startsWith('@')) define(term, scope)
  }
}

function vocabularyOf(scope: Scope): string | undefined {
  const vocabulary = own(scope.context, '@vocab')
  if (vocabulary === undefined) return scope.reading.vocabulary
  if (vocabulary === null) return undefined
  if (typeof vocabulary !== 'string') throw badRequestData('must be an IRI', '@context.@vocab')
  return vocabulary === '' ? scope.reading.vocabulary : resolve(vocabulary, scope)
}

/** Reads one definition, after those it refers to. */
function define(term: string, scope: Scope): void {
  const { context, reading, done, open } = scope
  if (done.has(term)) return
  const field = `@context.${term}`
  if (open.has(term)) throw badRequestData('is defined by itself', field)
  if (open.size >= limits.jsonDepthMax.value)
    throw badRequestData('terms refer to each other too deep', field)
  open.add(term)
  const definition = definitionOf(context[term]!, field)
  reading.terms.delete(term)
  const iri = definition.id === null || isUnsafe(term) ? null : iriOf(term, definition.id, scope)
  if (iri !== null) {
    const prefix = definition.prefix ?? (iri.startsWith('_:') || /[:/?#[\]@]$/.test(iri))
    reading.terms.set(term, { iri, prefix: prefix && !/[:/]/.test(term) })
    if (reading.terms.size > limits.contextTermsMax.value) {
      throw badRequestData(`more than ${limits.contextTermsMax.value} terms`, '@context')
    }
  }
  open.delete(term)
  done.add(term)
}

/** Such a term could not be a member name of any object. */
const isUnsafe = (term: string): boolean => term === '' || term === '__proto__'

/** Keywords have texts, numbers, truths or lists of them as values: nothing in a context is deep. */
function checkKeyword(keyword: string, value: Json, field: string): void {
  if (!keyword.startsWith('@')) throw badRequestData(`${keyword} is not a keyword`, field)
  const plain = (one: Json): boolean =>
    typeof one !== 'object' && (typeof one !== 'number' || Number.isFinite(one))
  const allowed = value === null || (isList(value) ? value.every(plain) : plain(value))
  if (!allowed) throw badRequestData('has a value that no keyword has', `${field}.${keyword}`)
}

interface Definition {
  /** What the definition names; null takes the term out, undefined leaves the term to stand for itself. */
  readonly id: string | null | undefined
  /** Stated by an expanded definition; undefined where the IRI decides. */
  readonly prefix: boolean | undefined
}

function definitionOf(definition: Json, field: string): Definition {
  if (definition === null || typeof definition === 'string') return { id: definition, prefix: undefined }
  if (!isObject(definition)) throw badRequestData('a definition is an IRI or an object', field)
  if (Object.hasOwn(definition, '@context')) throw badRequestData('scoped contexts are not allowed', field)
  if (Object.hasOwn(definition, '@reverse')) throw badRequestData('@reverse is not allowed', field)
  for (const [keyword, value] of Object.entries(definition)) checkKeyword(keyword, value, field)
  const id = own(definition, '@id')
  if (id !== undefined && id !== null && typeof id !== 'string')
    throw badRequestData('must be an IRI', `${field}.@id`)
  return { id, prefix: own(definition, '@prefix') === true }
}

/** IRI that a term stands for; null for keywords that NGSI-LD has no use for. */
function iriOf(term: string, id: string | undefined, scope: Scope): string | null {
  if (id === undefined || id === term) return itself(term, scope)
  const iri = resolve(id, scope)
  return iri.startsWith('@') && iri !== '@id' && iri !== '@type' ? null : iri
}

/**
 * A term that is defined without an IRI and looks like a compact one begins with what any term before the colon stands
 * for, while names elsewhere begin only with what may be a prefix [JSON-LD 1.1 API, 4.2.2].
 */
function itself(term: string, scope: Scope): string {
  const alone = standalone(term, scope)
  const colon = term.indexOf(':', 1)
  const suffix = term.slice(colon + 1)
  if (colon < 0 || suffix.startsWith('//')) return alone
  const start = scope.reading.terms.get(term.slice(0, colon))?.iri
  return start === undefined || start.startsWith('@') ? alone : start + suffix
}

/** A full IRI, compact IRI, term or bare name inside a context, as a full IRI. */
function resolve(value: string, scope: Scope): string {
  if (value.startsWith('@')) return value
  if (Object.hasOwn(scope.context, value)) define(value, scope)
  return scope.reading.terms.get(value)?.iri ?? standalone(value, scope)
}

/** The same for what is not a term: the core's own terms and prefixes are always in force. */
function standalone(value: string, scope: Scope): string {
  const colon = value.indexOf(':', 1)
  if (colon < 0) return coreTerms.get(value) ?? (scope.reading.vocabulary ?? defaultContextIri) + value
  const prefix = value.slice(0, colon)
  const suffix = value.slice(colon + 1)
  if (prefix === '_' || suffix.startsWith('//')) return value
  if (Object.hasOwn(scope.context, prefix)) define(prefix, scope)
  const term = scope.reading.terms.get(prefix)
  const start = term === undefined ? corePrefixes.get(prefix) : term.prefix ? term.iri : undefined
  return start === undefined ? value : start + suffix
}
