/**
 * Links to the neighbouring pages of a list (GS CIM 009, 6.3.10): the same request with another offset, as a path,
 * because the gateway cannot know under which host it was reached.
 */
import type { PageLinks } from './answer.ts'
import type { Paging } from './negotiate.ts'

export function pageLinks(url: string, { limit, offset }: Paging, more: boolean): PageLinks {
  if (limit === 0) return {}
  return {
    next: more ? pageAt(url, limit, offset + limit) : undefined,
    prev: offset > 0 ? pageAt(url, limit, Math.max(0, offset - limit)) : undefined,
  }
}

function pageAt(url: string, limit: number, offset: number): string {
  const { pathname, searchParams } = new URL(url)
  searchParams.set('limit', String(limit))
  searchParams.set('offset', String(offset))
  return `${pathname}?${searchParams}`
}
