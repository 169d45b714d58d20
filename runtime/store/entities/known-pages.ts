/**
 * Which entities are on the pages of lists by type that were asked for lately, so that to show such a page again takes no
 * search. What a page lists follows from the types of entities alone. So all pages are forgotten when any entity comes, goes or
 * gets other types, once that is on disk; whatever else an entity becomes changes no page.
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

    /** To be called with what a search has just found. */
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
    /** Another one whenever what was found before may be outdated. */
    version: () => version,
  })
}

/** What a page takes, in entities of 8 bytes: an empty one takes room too, and names of types are as long as URLs may be. */
const sizeOf = (key: string, { rids }: ListedPage): number =>
  rids.length + Math.ceil(key.length / 8) + pageSize
const pageSize = 24

/** Undefined where a search looks at more than one type. */
function keyOf(
  { selection, ids, idPattern, selectors, scope, attrs, q, geo }: EntitySearch,
  { limit, offset, after }: Place,
): string | undefined {
  if (selection?.kind !== 'type') return undefined
  const others = ids ?? idPattern ?? selectors ?? scope ?? attrs ?? q ?? geo
  return others === undefined ? `${after} ${offset} ${limit} ${selection.name}` : undefined
}
