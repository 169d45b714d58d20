/**
 * The memory of cached list pages is bounded. The property tests of queries and of plain reads show that
 * cached pages equal search results.
 */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createKnownPages } from './known-pages.ts'

const place = { limit: 20, offset: 0, after: 0 }
const ofType = (name: string) => ({ selection: { kind: 'type', name } as const })

it('caches fewer pages if the names of their types are longer, and counts empty pages too', () => {
  const pages = createKnownPages()
  const long = 'x'.repeat(8000)
  const names = Array.from({ length: 200 }, (_, i) => `${long}${i}`)
  for (const name of names) pages.remember(ofType(name), place, { rids: [], more: false })
  const kept = names.filter((name) => pages.find(ofType(name), place) !== undefined)
  // 8 bytes per entity.
  expect(kept.length * long.length).toBeLessThanOrEqual(limits.knownPagesRidsMax.value * 8)
  expect(kept.at(-1)).toBe(names.at(-1))
})
