/** Recognizing addresses of the same broker. */
import { describe, expect, it } from 'vitest'
import { canonicalAddress, otherAddressesOf } from './same-broker.ts'

describe('addresses of the same broker', () => {
  it.each([
    ['http://localhost:9191', 'http://127.0.0.1:9191', true],
    ['http://[::1]:9191/orion', 'http://localhost:9191/orion', true],
    ['http://localhost:9191', 'http://localhost:9192', false],
    ['http://localhost:9191', 'https://localhost:9191', false],
    ['http://localhost:9191/a', 'http://127.0.0.1:9191/b', false],
    ['http://broker:9191', 'http://127.0.0.1:9191', false],
    ['http://127.0.0.2:9191', 'http://127.0.0.1:9191', false],
    ['mdr', 'mdr', true],
  ])('%s and %s', (one, other, isSame) => {
    expect(canonicalAddress(one) === canonicalAddress(other)).toBe(isSame)
  })

  it('are listed', () => {
    expect(otherAddressesOf('http://localhost:1/x')).toEqual(['http://127.0.0.1:1/x', 'http://[::1]:1/x'])
    expect(otherAddressesOf('http://broker:1')).toEqual([])
    expect(otherAddressesOf('mdr')).toEqual([])
  })
})
