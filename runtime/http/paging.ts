/**
 * Links to the neighbouring pages of a list (GS CIM 009, 6.3.10): the same request with another offset, as a path,
 * because the gateway cannot know under which host it was reached. Where a list tells the position behind its page, the
 * link to the next one carries it: then nothing is shown twice or left out while others come and go.
 */
import { partsOf } from '#ngsi-ld/request-target.ts'
import type { PageLinks } from './answer.ts'
import type { Paging } from './negotiate.ts'

/** Links around a page behind which there are `more`, from the `position` behind it where that is known. */
export type PageLinker = (more: boolean, position?: string) => PageLinks

export function pageLinks(
  url: string,
  paging: Pick<Paging, 'limit' | 'offset'>,
  more: boolean,
  position?: string,
): PageLinks {
  return pageLinker(url, paging)(more, position)
}

/** The same for one request after the other: what does not depend on the answer is found once. */
export function pageLinker(url: string, { limit, offset }: Pick<Paging, 'limit' | 'offset'>): PageLinker {
  if (limit === 0) return () => ({})
  const prev = offset > 0 ? pageAt(url, limit, Math.max(0, offset - limit)) : undefined
  let behind: string | undefined
  return (more, position) => {
    if (!more) return { next: undefined, prev }
    behind ??= pageAt(url, limit, offset + limit)
    return { next: position === undefined ? behind : `${behind}&pageKey=${position}`, prev }
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
