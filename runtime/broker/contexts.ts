/**
 * Resolves the @context of a request to its compiled form. Those in use are kept compiled, so that the answer is
 * there at once, without a promise, for all but the first request that names a context. The core is never fetched.
 */
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext } from '#ngsi-ld/context.ts'
import { platformContextDocument } from '#ngsi-ld/platform-context.ts'
import { type ContextLibrary, type ContextLibraryPorts, createContextLibrary } from './context-library.ts'

/**
 * Where every gateway publishes the vocabulary of the platform. Under whatever host somebody names it, it is this
 * gateway's own copy.
 */
export const platformContextPath = '/contexts/selvedge-platform.jsonld'

export interface Contexts {
  /** The context of requests that name none. */
  readonly core: Context
  /**
   * What stands behind a Link header or in an `@context` member.
   * @throws ngsi-ld.context-not-available, ngsi-ld.bad-request-data; at once or by rejection.
   */
  resolve(local: Json): Context | Promise<Context>
}

/** A context in its compiled form, the documents it was made from, and until when these are fresh. */
interface Compiled {
  readonly context: Context
  readonly urls: readonly string[]
  freshUntil: number
}

/** An inline context with a longer text is compiled for each request instead of kept. */
const keyCharactersMax = 16_384
/** How long a kept context is used before it is looked at again whether its documents could be renewed. */
const lookAgainMs = 60_000

export function createContexts(
  ports: Omit<ContextLibraryPorts, 'onChange'>,
  settings: { readonly core: Context },
): Contexts {
  const { core } = settings
  const compiled = new Map<string, Compiled>()
  const library = createContextLibrary(
    {
      ...ports,
      onChange(url) {
        for (const [key, { urls }] of compiled) if (urls.includes(url)) compiled.delete(key)
      },
    },
    new Map([[platformContextPath, platformContextDocument]]),
  )

  const keep = (key: string, context: Context, urls: readonly string[]): Context => {
    if (key.length > keyCharactersMax) return context
    if (compiled.size >= limits.contextsCachedMax.value) compiled.delete(compiled.keys().next().value!)
    compiled.set(key, { context, urls, freshUntil: Math.min(...urls.map(library.freshUntil)) })
    return context
  }

  const use = (key: string, found: Compiled): Context => {
    compiled.delete(key)
    compiled.set(key, found)
    const now = ports.clock.now()
    if (found.freshUntil <= now) {
      found.freshUntil = now + lookAgainMs
      for (const url of found.urls) library.renew(url)
    }
    return found.context
  }

  return Object.freeze({
    core,
    resolve(local) {
      const key = typeof local === 'string' ? local : JSON.stringify(local)
      const found = compiled.get(key)
      if (found !== undefined) return use(key, found)
      const shelf = createShelf(library)
      const result = compileContext(local, shelf.find, core)
      if (!('missing' in result)) return keep(key, result, shelf.urls())
      return compileWithFetching(local, result.missing, shelf, core).then((context) =>
        keep(key, context, shelf.urls()),
      )
    },
  } satisfies Contexts)
}

/** The documents that one compilation used: what was found at hand stays the same until its end. */
interface Shelf {
  find(url: string): Json | undefined
  fetch(url: string): Promise<void>
  urls(): readonly string[]
}

function createShelf(library: ContextLibrary): Shelf {
  const documents = new Map<string, Json>()
  return {
    find(url) {
      const document = documents.get(url) ?? library.find(url)
      if (document !== undefined) documents.set(url, document)
      return document
    },
    async fetch(url) {
      documents.set(url, await library.fetch(url))
    },
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
