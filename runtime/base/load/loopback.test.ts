/** Hosts that count as this machine. */
import { describe, expect, it } from 'vitest'
import { isLoopback, isLoopbackListener, lookupRemote, reachableHost } from './loopback.ts'

describe('isLoopback', () => {
  it.each([
    '127.0.0.1',
    '127.255.0.3',
    '0.0.0.0',
    '::1',
    '[::1]',
    '::',
    '::ffff:127.0.0.1',
    'localhost',
    'LocalHost.',
    'a.localhost',
  ])('is true for %s', (host) => expect(isLoopback(host)).toBe(true))
  it.each(['192.168.1.2', '10.0.0.1', '2001:db8::1', 'example.org', 'localhost.example.org', '128.0.0.1'])(
    'is false for %s',
    (host) => expect(isLoopback(host)).toBe(false),
  )
})

describe('isLoopbackListener', () => {
  it.each(['127.0.0.1', '127.1.2.3', 'localhost', '::1', '[::1]'])('%s needs no token', (host) => {
    expect(isLoopbackListener(host)).toBe(true)
  })

  it.each(['0.0.0.0', '0.0.0.1', '::', '10.0.0.1', 'fe80::1', 'gateway.local', '128.0.0.1'])(
    '%s needs a token',
    (host) => {
      expect(isLoopbackListener(host)).toBe(false)
    },
  )
})

it.each([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '[::1]'],
  ['fe80::1', '[fe80::1]'],
  ['192.168.1.2', '192.168.1.2'],
  ['gateway.local', 'gateway.local'],
])('a listener at %s is reached at %s', (host, name) => expect(reachableHost(host)).toBe(name))

describe('lookupRemote', () => {
  it('fails for a name that resolves to this machine', async () => {
    const error = await new Promise((resolve) => lookupRemote('localhost', {}, resolve))
    expect(error).toMatchObject({ code: 'peer.loopback' })
  })
})
