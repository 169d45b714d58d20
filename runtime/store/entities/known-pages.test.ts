/**
 * What pages of lists take in memory is bounded, whatever they are pages of.
 * That they are what a search would find is shown by the property tests of queries and of plain reads.
 */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createKnownPages } from './known-pages.ts'

const place = { limit: 20, offset: 0, after: 0 }
const ofType = (name: string) => ({ selection: { kind: 'type', name } as const })

it('keeps fewer pages the longer the names of their types are, empty ones too', () => {
  const pages = createKnownPages()
  const long = 'x'.repeat(8000)
  const names = Array.from({ length: 200 }, (_, i) => `${long}${i}`)
  for (const name of names) pages.remember(ofType(name), place, { rids: [], more: false })
  const kept = names.filter((name) => pages.find(ofType(name), place) !== undefined)
  // 8 bytes for an entity.
  expect(kept.length * long.length).toBeLessThanOrEqual(limits.knownPagesRidsMax.value * 8)
  expect(kept.at(-1)).toBe(names.at(-1))
})
