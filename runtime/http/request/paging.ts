/**
 * Links to the neighbouring pages of a list (GS CIM 009, 6.3.10): the same request with another offset, as a path,
 * because the gateway cannot know under which host it was reached. Where a list tells the position behind its page, the
 * link to the next one carries it: then nothing is shown twice or left out while others come and go.
 */
import { limits } from '#base/limits/limits.ts'
import type { QueryPage } from '#broker/state/entity-queries.ts'
import { partsOf } from '#ngsi-ld/values/request-target.ts'
import type { Paging } from './negotiate.ts'
import type { PageLinks } from './response.ts'

/** Links around a page, from the position behind it where that is known, else from how many of the list it covers. */
export type PageLinker = (page: Pick<QueryPage, 'more' | 'next' | 'taken'>) => PageLinks

/** Links around a page of a list that has no positions: the next one begins behind those that were `shown`. */
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

/** The texts of the first items that fit into one page, at least one of them. */
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

/** The same for one request after the other: what does not depend on the answer is found once. */
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

/** By text, because a URL object would cost as much as reading a page. */
function pageAt(url: string, limit: number, offset: number): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const [path, query] = partsOf(url.slice(start))
  const others = query.split('&').filter((pair) => pair !== '' && !isPaging.test(decodeURIComponent(pair)))
  return `${path.replace(/\/$/, '')}?${[...others, `limit=${limit}`, `offset=${offset}`].join('&')}`
}

const isPaging = /^(?:limit|offset|pageKey)(?:=|$)/
