/**
 * Resolves the @context of a request to its compiled form. Those in use are kept compiled, so that the answer is
 * there at once, without a promise, for all but the first request that names a context. The core is never fetched.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext, createCoreContext } from '#ngsi-ld/context/context.ts'
import { checkTermCount } from '#ngsi-ld/context/context-terms.ts'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'
import { createUnnamedContext } from '#ngsi-ld/context/platform-names.ts'
import type { ProfileRules } from '#ngsi-ld/values/profile.ts'
import {
  type ContextLibrary,
  type ContextLibraryPorts,
  createContextLibrary,
  type KeptContext,
} from './context-library.ts'

/**
 * Where every gateway publishes the vocabulary of the platform. Under whatever host somebody names it, it is this
 * gateway's own copy.
 */
export const platformContextPath = '/contexts/selvedge-platform.jsonld'

/** Where hosted @contexts are served, each under its local id. */
export const hostedContextsPath = '/ngsi-ld/v1/jsonldContexts'

export interface Contexts {
  /** The core alone, for requests that name it and for exchange with other brokers. */
  readonly core: Context
  /** The context of requests that name none. */
  readonly unnamed: Context
  /**
   * What stands behind a Link header or in an `@context` member; `tenant` decides which hosted ones there are.
   * @throws ngsi-ld.context-not-available, ngsi-ld.bad-request-data; at once or by rejection.
   */
  resolve(local: Json, tenant?: string): Context | Promise<Context>
  /** @throws ngsi-ld.bad-request-data for what no context may say; documents that are not at hand are not looked at. */
  check(local: Json, tenant: string): void
  /** How often a document was used since it was stored, at most since the start, and when last, ms. */
  uses(url: string): ContextUses
  /** A hosted document is no more; whatever was made of it is forgotten. */
  dropped(id: string): void
  /** Documents fetched from elsewhere, which all tenants share: they are facts of the outside. */
  readonly cached: Pick<ContextLibrary, 'reload' | 'forget'> & { list(): readonly KeptContext[] }
}

export interface ContextUses {
  readonly hits: number
  readonly last: number | undefined
}

export interface ContextsPorts extends Omit<ContextLibraryPorts, 'onChange'> {
  /** The document that a tenant hosts under a local id. */
  readonly hosted: (tenant: string, id: string) => Json | undefined
}

/** A context in its compiled form, the documents it was made from, and until when these are fresh. */
interface Compiled {
  readonly context: Context
  readonly urls: readonly string[]
  freshUntil: number
  hits: number
  usedAt: number
}

/** An inline context with a longer text is compiled for each request instead of kept. */
const keyCharactersMax = 16_384
/** How long a kept context is used before it is looked at again whether its documents could be renewed. */
const lookAgainMs = 60_000

/** @param rules decide what a request means that names no context, and how answers name theirs. */
export function createContexts(
  ports: ContextsPorts,
  { coreVersion, servesPlatform = false }: Pick<ProfileRules, 'coreVersion' | 'servesPlatform'>,
): Contexts {
  const core = createCoreContext(coreVersion, { isListed: servesPlatform })
  const compiled = new Map<string, Compiled>()
  const earlier = new Map<string, { hits: number; last: number }>()
  const library = createContextLibrary(
    { ...ports, onChange: (changed) => release((url) => url === changed) },
    new Map([[platformContextPath, platformContextDocument]]),
  )

  /** Forgets what was made of certain documents, but not how often these were used. */
  const release = (isChanged: (url: string) => boolean): void => {
    for (const [key, { urls }] of compiled) if (urls.some(isChanged)) leave(key)
  }
  const leave = (key: string): void => {
    const { urls, hits, usedAt } = compiled.get(key)!
    compiled.delete(key)
    for (const name of urls.map(nameOf)) {
      const before = earlier.get(name)
      earlier.delete(name)
      earlier.set(name, { hits: (before?.hits ?? 0) + hits, last: Math.max(before?.last ?? 0, usedAt) })
    }
    while (earlier.size > 4 * limits.contextsCachedMax.value) earlier.delete(earlier.keys().next().value!)
  }

  const keep = (key: string, context: Context, shelf: Shelf): Context => {
    const urls = shelf.urls()
    // What had to be fetched is stored anew, also where it had been here before.
    for (const url of shelf.fetched()) earlier.delete(nameOf(url))
    if (key.length > keyCharactersMax) return context
    if (compiled.size >= limits.contextsCachedMax.value) leave(compiled.keys().next().value!)
    const freshUntil = Math.min(...urls.map(library.freshUntil))
    compiled.set(key, { context, urls, freshUntil, hits: 1, usedAt: ports.clock.now() })
    return context
  }

  const use = (key: string, found: Compiled): Context => {
    compiled.delete(key)
    compiled.set(key, found)
    const now = ports.clock.now()
    found.hits++
    found.usedAt = now
    if (found.freshUntil <= now) {
      found.freshUntil = now + lookAgainMs
      for (const url of found.urls) library.renew(url)
    }
    return found.context
  }

  const shelfOf = (tenant: string): Shelf =>
    createShelf(library, (url) => {
      const id = hostedIdOf(url)
      return id === undefined ? undefined : ports.hosted(tenant, id)
    })

  return Object.freeze({
    core,
    unnamed: createUnnamedContext(core, servesPlatform ? 'terms' : 'prefixes'),
    resolve(local, tenant = '') {
      checkTermCount(local)
      const name = typeof local === 'string' ? local : JSON.stringify(local)
      const key = tenant === '' ? name : `${tenant} ${name}`
      const found = compiled.get(key)
      if (found !== undefined) return use(key, found)
      const shelf = shelfOf(tenant)
      const result = compileContext(local, shelf.find, core)
      if (!('missing' in result)) return keep(key, result, shelf)
      return compileWithFetching(local, result.missing, shelf, core).then((context) =>
        keep(key, context, shelf),
      )
    },
    check(local, tenant) {
      compileContext(local, shelfOf(tenant).find, core)
    },
    uses(url) {
      const name = nameOf(url)
      const users = [...compiled.values()].filter(({ urls }) => urls.some((used) => nameOf(used) === name))
      const before = earlier.get(name)
      const last = Math.max(before?.last ?? 0, ...users.map(({ usedAt }) => usedAt))
      const hits = users.reduce((sum, user) => sum + user.hits, before?.hits ?? 0)
      return { hits, last: last === 0 ? undefined : last }
    },
    dropped: (id) => release((url) => hostedIdOf(url) === id),
    cached: { list: library.kept, reload: library.reload, forget: library.forget },
  } satisfies Contexts)
}

/** The local id in the address of a hosted context, whatever host and proxy stand before it. */
export function hostedIdOf(url: string): string | undefined {
  const at = url.lastIndexOf(`${hostedContextsPath}/`)
  const id = at === -1 ? '' : url.slice(at + hostedContextsPath.length + 1)
  return /^[\w-]+$/.test(id) ? id : undefined
}

/** What a document is counted by: a hosted one is the same under whatever host. */
const nameOf = (url: string): string => hostedIdOf(url) ?? url

/** The documents that one compilation used: what was found at hand stays the same until its end. */
interface Shelf {
  find(url: string): Json | undefined
  fetch(url: string): Promise<void>
  urls(): readonly string[]
  fetched(): Iterable<string>
}

function createShelf(library: ContextLibrary, hosted: (url: string) => Json | undefined): Shelf {
  const documents = new Map<string, Json>()
  const fetched = new Set<string>()
  return {
    find(url) {
      const document = documents.get(url) ?? hosted(url) ?? library.find(url)
      if (document !== undefined) documents.set(url, document)
      return document
    },
    async fetch(url) {
      documents.set(url, await library.fetch(url))
      fetched.add(url)
    },
    fetched: () => fetched,
    urls: () => [...documents.keys()],
  }
}

/** Fetches what is missing, which may name more; ends because a context may name only so many documents. */
async function compileWithFetching(
  local: Json,
  missing: readonly string[],
  shelf: Shelf,
  core: Context,
): Promise<Context> {
  await Promise.all(missing.map(shelf.fetch))
  const result = compileContext(local, shelf.find, core)
  return 'missing' in result ? compileWithFetching(local, result.missing, shelf, core) : result
}
