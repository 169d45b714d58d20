/** Which route a path finds: by its segments, with or without a slash at its end. */
import { describe, expect, it } from 'vitest'
import { createRouter } from './router.ts'

const router = createRouter<string>()
for (const path of ['/', '/v1/things', '/v1/things/new', '/v1/things/:id', '/v1/things/:id/parts/:part'])
  router.add('ALL', path, path)

const found = (path: string): unknown => router.match('GET', path)[0][0]

describe('a router', () => {
  it.each([
    ['/', '/', {}],
    ['/v1/things', '/v1/things', {}],
    ['/v1/things/', '/v1/things', {}],
    ['/v1/things/new', '/v1/things/new', {}],
    ['/v1/things/a%2Fb', '/v1/things/:id', { id: 'a%2Fb' }],
    ['/v1/things/a/', '/v1/things/:id', { id: 'a' }],
    ['/v1/things/a/parts/b', '/v1/things/:id/parts/:part', { id: 'a', part: 'b' }],
    ['/v1/things//parts/b/', '/v1/things/:id/parts/:part', { id: '', part: 'b' }],
  ])('finds %s', (path, route, parameters) => {
    expect(found(path)).toEqual([route, parameters])
  })

  it.each(['/v1', '/v2/things', '/v1/things//', '/v1/things/a/parts', '/v1/things/a/parts//', '//v1/things'])(
    'finds nothing at %s',
    (path) => {
      expect(found(path)).toBeUndefined()
    },
  )
})
