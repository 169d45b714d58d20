/** Paths of any length lose their trailing slashes in linear time. */
import { expect, it } from 'vitest'
import { withoutTrailingSlashes } from './trailing-slashes.ts'

it('are removed, and no others', () => {
  const paths = ['/a/b//', '/a//b', '/', '', '//']
  expect(paths.map(withoutTrailingSlashes)).toEqual(['/a/b', '/a//b', '', '', ''])
  expect(withoutTrailingSlashes(`/a${'/'.repeat(1e6)}x`)).toHaveLength(1_000_003)
})
