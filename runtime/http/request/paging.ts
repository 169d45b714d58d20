/**
 * Links to the next and previous page of a list (GS CIM 009, 6.3.10). A link is the path of the same request
 * with another offset, because the gateway cannot know its host name as clients see it. If a list knows the
 * position after its page, the next link carries it. Then concurrent creations and deletions neither repeat
 * nor hide entities.
 */
import { limits } from '#base/limits/limits.ts'
import type { QueryPage } from '#broker/state/entity-queries.ts'
import type { Paging } from '#ngsi-ld/query/url-parameters.ts'
import { partsOf } from '#ngsi-ld/values/request-target.ts'
import type { PageLinks } from './response.ts'

/**
 * Builds the links around a page, from the position after it if known, otherwise from the number of entities
 * it covers.
 */
export type PageLinker = (page: Pick<QueryPage, 'more' | 'next' | 'taken'>) => PageLinks

/** Links around a page of a list without positions: the next page starts after the `shown` items. */
export function pageLinks(
  url: string,
  { limit, offset }: Pick<Paging, 'limit' | 'offset'>,
  { shown, more }: { readonly shown: number; readonly more: boolean },
): PageLinks {
  if (limit === 0) return {}
  return {
    next: more ? pageAt(url, limit, offset + shown) : undefined,
    prev: offset > 0 ? pageAt(url, limit, Math.max(0, offset - limit)) : undefined,
  }
}

/** The texts of the first items that fit into one page; at least one. */
export function textsWithin<Item>(items: readonly Item[], textOf: (item: Item) => string): readonly string[] {
  const texts: string[] = []
  let size = 0
  for (const item of items) {
    const text = textOf(item)
    size += text.length
    if (size > limits.pageBytesMax.value && texts.length > 0) break
    texts.push(text)
  }
  return texts
}

/** Builds links for one request repeatedly; parts that do not depend on the response are computed once. */
export function pageLinker(url: string, { limit, offset }: Pick<Paging, 'limit' | 'offset'>): PageLinker {
  if (limit === 0) return () => ({})
  const prev = offset > 0 ? pageAt(url, limit, Math.max(0, offset - limit)) : undefined
  let behind: string | undefined
  return ({ more, next, taken = limit }) => {
    if (!more) return { next: undefined, prev }
    if (next === undefined) return { next: pageAt(url, limit, offset + taken), prev }
    behind ??= pageAt(url, limit, offset + limit)
    return { next: `${behind}&pageKey=${next}`, prev }
  }
}

/** Works on text, because a URL object would cost as much as reading a page. */
function pageAt(url: string, limit: number, offset: number): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const [path, query] = partsOf(url.slice(start))
  const others = query.split('&').filter((pair) => pair !== '' && !isPaging.test(decodeURIComponent(pair)))
  return `${path.replace(/\/$/, '')}?${[...others, `limit=${limit}`, `offset=${offset}`].join('&')}`
}

const isPaging = /^(?:limit|offset|pageKey)(?:=|$)/
