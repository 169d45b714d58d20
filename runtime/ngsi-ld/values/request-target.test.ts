/** Splitting a request target into path and query. */
import { expect, it } from 'vitest'
import { partsOf } from './request-target.ts'

it.each([
  ['/a/b', ['/a/b', '']],
  ['/a/b?', ['/a/b', '']],
  ['/a?idPattern=urn:x/?.*&drop=b?c', ['/a', 'idPattern=urn:x/?.*&drop=b?c']],
])('%s', (target, parts) => {
  expect(partsOf(target)).toEqual(parts)
})
