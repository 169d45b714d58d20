/**
 * Caches pages of entity lists by type, so that a repeated request needs no search. A page depends on the
 * types of entities alone. All pages are dropped when an entity is created, deleted or changes its types,
 * once that is on disk. Other changes of an entity affect no page.
 */
import { limits } from '#base/limits/limits.ts'
import type { EntitySearch } from '#ngsi-ld/query/search.ts'

/** The entities on a page, in order of creation. */
export interface ListedPage {
  readonly rids: readonly number[]
  /** True when more follow. */
  readonly more: boolean
}

interface Place {
  readonly limit: number
  readonly offset: number
  readonly after: number
}

export function createKnownPages() {
  const pages = new Map<string, ListedPage>()
  let held = 0
  let version = 0

  const forget = (): void => {
    version++
    pages.clear()
    held = 0
  }

  return Object.freeze({
    find(search: EntitySearch, place: Place): ListedPage | undefined {
      if (pages.size === 0) return undefined
      const key = keyOf(search, place)
      return key === undefined ? undefined : pages.get(key)
    },

    /** Call with the result of a search. */
    remember(search: EntitySearch, place: Place, page: ListedPage): void {
      const key = keyOf(search, place)
      if (key === undefined || pages.has(key)) return
      pages.set(key, page)
      held += sizeOf(key, page)
      for (const [oldest, listed] of pages) {
        if (held <= limits.knownPagesRidsMax.value) break
        pages.delete(oldest)
        held -= sizeOf(oldest, listed)
      }
    },

    forget,
    /** Changes whenever earlier results may be outdated. */
    version: () => version,
  })
}

/**
 * Size of a cached page, in entities of 8 bytes. An empty page needs space too, and type names may be as long
 * as URLs.
 */
const sizeOf = (key: string, { rids }: ListedPage): number =>
  rids.length + Math.ceil(key.length / 8) + pageSize
const pageSize = 24

/** Undefined when the search depends on more than one type. */
function keyOf(
  { selection, ids, idPattern, selectors, scope, attrs, q, geo }: EntitySearch,
  { limit, offset, after }: Place,
): string | undefined {
  if (selection?.kind !== 'type') return undefined
  const others = ids ?? idPattern ?? selectors ?? scope ?? attrs ?? q ?? geo
  return others === undefined ? `${after} ${offset} ${limit} ${selection.name}` : undefined
}
