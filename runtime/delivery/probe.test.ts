/** Host, port and printable form of endpoint URIs. */
import { describe, expect, it } from 'vitest'
import { originOf, shownUri } from './probe.ts'

describe('the origin of an endpoint', () => {
  it.each([
    ['http://Example.org/a?b', 'http://example.org:80', 'example.org', 80],
    ['https://user:secret@example.org/a', 'https://example.org:443', 'example.org', 443],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080', '127.0.0.1', 8080],
    ['http://[::1]:8080/', 'http://[::1]:8080', '::1', 8080],
    ['mqtts://broker.example/t/1', 'mqtts://broker.example:8883', 'broker.example', 8883],
  ])('%s is %s', (uri, key, host, port) => {
    expect(originOf(uri)).toEqual({ key, address: { host, port } })
  })
  it.each(['', 'nonsense', 'urn:a:b', 'file:///etc/passwd', 'unix:/run/x'])('%s has no origin', (uri) => {
    expect(originOf(uri)).toBeUndefined()
  })
})

describe('an endpoint is shown without secrets', () => {
  it.each([
    ['https://user:secret@example.org:8443/notify?token=secret#x', 'https://example.org:8443/notify'],
    ['http://127.0.0.1:80/', 'http://127.0.0.1/'],
    ['nonsense', 'nonsense'],
  ])('%s as %s', (uri, shown) => {
    expect(shownUri(uri)).toBe(shown)
  })
})
