/** Each entry of a Via header that this gateway writes names the protocol; Scorpio fails without it. */
import { expect, it } from 'vitest'
import { appendedVia, pseudonymsOf, viaHeader } from './via.ts'

it.each([
  [viaHeader(undefined, 'me'), 'HTTP/1.1 me'],
  [viaHeader('a,b', 'me'), 'HTTP/1.1 a, HTTP/1.1 b, HTTP/1.1 me'],
  [appendedVia(undefined, 'me'), 'HTTP/1.1 me'],
  [appendedVia('1.1 a', 'me'), '1.1 a, HTTP/1.1 me'],
  [appendedVia(['1.1 a', '2 b (x)'], 'me'), '1.1 a, 2 b (x), HTTP/1.1 me'],
])('%s', (header, expected) => {
  expect(header).toBe(expected)
  expect(pseudonymsOf(header).at(-1)).toBe('me')
})
