/**
 * Resolves the @context of a request to its compiled form. Contexts in use stay compiled, so that only the
 * first request with a context needs a promise. The core context is never fetched.
 */
import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Json } from '#contract/pipeline.ts'
import { type Context, contextOf, createCoreContext } from '#ngsi-ld/context/context.ts'
import { checkTermCount, type LocalTerms, readTerms } from '#ngsi-ld/context/context-terms.ts'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'
import { createUnnamedContext } from '#ngsi-ld/context/platform-names.ts'
import type { ProfileRules } from '#ngsi-ld/values/profile.ts'
import {
  type CachedContext,
  type ContextLibrary,
  type ContextLibraryPorts,
  createContextLibrary,
} from './context-library.ts'

/**
 * Path under which every gateway publishes the platform's vocabulary. At any host, this gateway uses its own
 * copy.
 */
export const platformContextPath = '/contexts/selvedge-platform.jsonld'

/** Path under which hosted @contexts are served, each by its local id. */
export const hostedContextsPath = '/ngsi-ld/v1/jsonldContexts'

export interface Contexts {
  /** The core context alone, for requests that name it and for exchange with other brokers. */
  readonly core: Context
  /** The context of requests that name none. */
  readonly unnamed: Context
  /**
   * The compiled context of a Link header or an `@context` member; `tenant` decides which hosted contexts
   * exist. A context of many terms is compiled in several turns of the event loop.
   *
   * @throws ngsi-ld.context-not-available, ngsi-ld.bad-request-data; synchronously or by rejection.
   */
  resolve(local: Json, tenant?: string): Context | Promise<Context>
  /**
   * The context, compiled in this turn. Undefined if documents are missing; they are then fetched for the
   * next time.
   *
   * @throws ngsi-ld.bad-request-data
   */
  resolveAtOnce(local: Json, tenant: string): Context | undefined
  /**
   * Checks a context in a turn of its own, without fetching documents. @throws ngsi-ld.bad-request-data for
   * invalid definitions.
   */
  check(local: Json, tenant: string): Promise<void>
  /** How often a document was used since it was stored or since the start, and when last, ms. */
  uses(url: string): ContextUses
  /** Discards everything compiled from a hosted document that was deleted. */
  dropped(id: string): void
  /** Documents fetched from other hosts. All tenants share them, because they are public. */
  readonly cached: Pick<ContextLibrary, 'reload' | 'forget'> & { list(): readonly CachedContext[] }
}

export interface ContextUses {
  readonly hits: number
  readonly last: number | undefined
}

export interface ContextsPorts extends Omit<ContextLibraryPorts, 'onChange'> {
  /** The document that a tenant hosts under a local id. */
  readonly hosted: (tenant: string, id: string) => Json | undefined
}

/** A compiled context, the documents it was made from, and until when these are fresh. */
interface Compiled {
  readonly context: Context
  readonly urls: readonly string[]
  freshUntil: number
  hits: number
  usedAt: number
}

/** An inline context with a longer text is compiled for each request and not cached. */
const keyCharactersMax = 16_384
/** Interval at which a context with expired documents tries to renew them, ms. */
const renewAgainMs = 60_000

/** @param rules decide the context of a request that names none, and how responses name theirs. */
export function createContexts(
  ports: ContextsPorts,
  { coreVersion, servesPlatform = false }: Pick<ProfileRules, 'coreVersion' | 'servesPlatform'>,
): Contexts {
  const core = createCoreContext(coreVersion, { isListed: servesPlatform })
  const compiled = new Map<string, Compiled>()
  /** Contexts that are compiled in several turns, none from documents that have changed since. */
  const compiling = new Map<string, Promise<Context>>()
  let compiledBytes = 0
  const evictedUses = new Map<string, { hits: number; last: number }>()
  const library = createContextLibrary(
    { ...ports, onChange: (changed) => discard((url) => url === changed) },
    new Map([[platformContextPath, platformContextDocument]]),
  )

  /** How often documents changed: what was compiled meanwhile is not kept. */
  let changes = 0

  /** Discards what was compiled from the changed documents, and keeps their usage counts. */
  const discard = (isChanged: (url: string) => boolean): void => {
    changes++
    compiling.clear()
    for (const [key, { urls }] of compiled) if (urls.some(isChanged)) evict(key)
  }
  const evict = (key: string): void => {
    const { context, urls, hits, usedAt } = compiled.get(key)!
    compiled.delete(key)
    compiledBytes -= context.bytes
    for (const name of urls.map(nameOf)) {
      const before = evictedUses.get(name)
      evictedUses.delete(name)
      evictedUses.set(name, { hits: (before?.hits ?? 0) + hits, last: Math.max(before?.last ?? 0, usedAt) })
    }
    while (evictedUses.size > 4 * limits.contextsCachedMax.value)
      evictedUses.delete(evictedUses.keys().next().value!)
  }

  const keep = (key: string, context: Context, documentSet: DocumentSet): Context => {
    const urls = documentSet.urls()
    // A fetched document is newly stored, so its usage count restarts.
    for (const url of documentSet.fetched()) evictedUses.delete(nameOf(url))
    if (key.length > keyCharactersMax || documentSet.changes !== changes) return context
    // Another request may have compiled it meanwhile.
    if (compiled.has(key)) evict(key)
    for (const [oldest] of compiled) {
      const isFull = compiledBytes + context.bytes > limits.contextsCompiledBytesMax.value
      if (!isFull && compiled.size < limits.contextsCachedMax.value) break
      evict(oldest)
    }
    compiledBytes += context.bytes
    const freshUntil = Math.min(...urls.map(library.freshUntil))
    compiled.set(key, { context, urls, freshUntil, hits: 1, usedAt: ports.clock.now() })
    return context
  }

  const useIfKept = (key: string): Context | undefined => {
    const found = compiled.get(key)
    if (found === undefined) return undefined
    compiled.delete(key)
    compiled.set(key, found)
    const now = ports.clock.now()
    found.hits++
    found.usedAt = now
    if (found.freshUntil <= now) {
      found.freshUntil = now + renewAgainMs
      for (const url of found.urls) library.renew(url)
    }
    return found.context
  }

  const documentSetOf = (tenant: string): DocumentSet =>
    createDocumentSet(library, changes, (url) => {
      const id = hostedIdOf(url)
      return id === undefined ? undefined : ports.hosted(tenant, id)
    })

  const resolve = (local: Json, tenant = ''): Context | Promise<Context> => {
    const key = keyOf(local, tenant)
    const kept = useIfKept(key)
    if (kept !== undefined) return kept
    const known = compiling.get(key)
    if (known !== undefined) return known.then((context) => useIfKept(key) ?? context)
    const documentSet = documentSetOf(tenant)
    let terms: LocalTerms | undefined
    if (key.length <= keyCharactersMax) {
      terms = readTerms(local, documentSet.find)
      const isShort = terms.missing.length === 0 && terms.terms.size <= termsAtOnceMax
      if (isShort) return keep(key, contextOf(local, terms, core), documentSet)
    }
    return compileLater(key, local, documentSet, terms)
  }

  /** Compiles in later turns; requests for the same context meanwhile share the result. */
  const compileLater = (
    key: string,
    local: Json,
    documentSet: DocumentSet,
    terms?: LocalTerms,
  ): Promise<Context> => {
    const result = compileInTurns(local, documentSet, core, terms)
      .then((context) => keep(key, context, documentSet))
      .finally(() => {
        if (compiling.get(key) === result) compiling.delete(key)
      })
    if (key.length <= keyCharactersMax) compiling.set(key, result)
    return result
  }

  return Object.freeze({
    core,
    unnamed: createUnnamedContext(core, servesPlatform ? 'terms' : 'prefixes'),
    resolve,
    resolveAtOnce(local, tenant) {
      const key = keyOf(local, tenant)
      const kept = useIfKept(key)
      if (kept !== undefined) return kept
      const documentSet = documentSetOf(tenant)
      const terms = readTerms(local, documentSet.find)
      if (terms.missing.length === 0) return keep(key, contextOf(local, terms, core), documentSet)
      if (!compiling.has(key)) compileLater(key, local, documentSet, terms).catch(() => {})
      return undefined
    },
    async check(local, tenant) {
      await nextTurn()
      readTerms(local, documentSetOf(tenant).find)
      await nextTurn()
    },
    uses(url) {
      const name = nameOf(url)
      const users = [...compiled.values()].filter(({ urls }) => urls.some((used) => nameOf(used) === name))
      const before = evictedUses.get(name)
      const last = Math.max(before?.last ?? 0, ...users.map(({ usedAt }) => usedAt))
      const hits = users.reduce((sum, user) => sum + user.hits, before?.hits ?? 0)
      return { hits, last: last === 0 ? undefined : last }
    },
    dropped: (id) => discard((url) => hostedIdOf(url) === id),
    cached: { list: library.cached, reload: library.reload, forget: library.forget },
  } satisfies Contexts)
}

/** @throws ngsi-ld.bad-request-data for more terms than a context may have */
function keyOf(local: Json, tenant: string): string {
  checkTermCount(local)
  const name = typeof local === 'string' ? local : JSON.stringify(local)
  return tenant === '' ? name : `${tenant} ${name}`
}

/** The local id in the URL of a hosted context, whatever host and proxy path precede it. */
export function hostedIdOf(url: string): string | undefined {
  const at = url.lastIndexOf(`${hostedContextsPath}/`)
  const id = at === -1 ? '' : url.slice(at + hostedContextsPath.length + 1)
  return /^[\w-]+$/.test(id) ? id : undefined
}

/** The key for usage counts: a hosted document counts as one under any host. */
const nameOf = (url: string): string => hostedIdOf(url) ?? url

type DocumentSet = ReturnType<typeof createDocumentSet>

/** The documents of one compilation; a document does not change until the compilation ends. */
function createDocumentSet(
  library: ContextLibrary,
  changes: number,
  hosted: (url: string) => Json | undefined,
) {
  const documents = new Map<string, Json>()
  const fetched = new Set<string>()
  return {
    changes,
    find(url: string): Json | undefined {
      const document = documents.get(url) ?? hosted(url) ?? library.find(url)
      if (document !== undefined) documents.set(url, document)
      return document
    },
    async fetch(url: string): Promise<void> {
      documents.set(url, await library.fetch(url))
      fetched.add(url)
    },
    fetched: () => fetched,
    urls: () => [...documents.keys()],
  }
}

/** Terms of a context that is compiled in the turn in which they are read; reading them takes 3 ms. */
const termsAtOnceMax = 1000

/**
 * Reads and compiles a context, each in a turn of its own. Fetches missing documents, which may refer to
 * more; ends because a context may refer to only so many documents.
 * @param found what was already read
 */
async function compileInTurns(
  local: Json,
  documentSet: DocumentSet,
  core: Context,
  found?: LocalTerms,
): Promise<Context> {
  await nextTurn()
  const terms = found ?? readTerms(local, documentSet.find)
  if (terms.missing.length > 0) {
    await Promise.all(terms.missing.map(documentSet.fetch))
    return compileInTurns(local, documentSet, core)
  }
  if (found === undefined) await nextTurn()
  return contextOf(local, terms, core)
}
