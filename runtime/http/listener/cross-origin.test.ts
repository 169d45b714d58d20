/** Which Host headers and which origins a listener without a token accepts. */
import { describe, expect, it } from 'vitest'
import { createPageGuard, doesMoreThanRead } from './cross-origin.ts'

const guard = createPageGuard({
  host: '127.0.0.1',
  allowedHosts: ['Gate.Example', 'fd00::7'],
  publicUrl: 'https://site.example:8443',
})

const accepts = (judge: () => void): boolean => {
  try {
    judge()
    return true
  } catch {
    return false
  }
}

describe('a Host header', () => {
  it.each([
    'localhost',
    'LOCALHOST:9090',
    'localhost.:9090',
    '127.0.0.1:1',
    '127.1:9090',
    '127.8.9.10',
    '[::1]',
    '[::1]:9090',
    'gate.example',
    'GATE.example.:80',
    '[fd00::7]:9090',
    'site.example',
    'localhost:',
    '',
    undefined,
  ])('of loopback or the settings is accepted: %s', (host) => {
    expect(accepts(() => guard.assertHost(host === undefined ? {} : { host }))).toBe(true)
  })

  it.each([
    'evil.example',
    'evil.example:9090',
    'localhost.evil.example',
    'evil.localhost',
    '127.0.0.1.evil.example',
    '127.0.0.1evil',
    'localhost:9090@evil.example',
    'evil@localhost',
    '0.0.0.0:9090',
    '[::]:9090',
    '[::ffff:127.0.0.1]',
    '192.168.1.7',
    'gate.example.evil',
    'localhost:9090:80',
    '[::1].evil.example',
    ' localhost',
    'localhost, evil.example',
  ])('of another host is refused: %s', (host) => {
    expect(accepts(() => guard.assertHost({ host }))).toBe(false)
  })
})

describe('an origin', () => {
  it.each([
    ['http://localhost:9090', 'localhost:9090'],
    ['http://localhost', 'localhost:80'],
    ['https://site.example:8443', '127.0.0.1:9090'],
    ['https://gate.example', '127.0.0.1:9090'],
    ['http://gate.example:3000', '127.0.0.1:9090'],
    ['http://[::1]:9090', '[::1]:9090'],
    [undefined, '127.0.0.1:9090'],
  ])('of this gateway or the settings is accepted: %s', (origin, host) => {
    expect(accepts(() => guard.assertOrigin({ host, ...(origin && { origin }) }))).toBe(true)
  })

  it.each([
    ['http://localhost:3000', 'localhost:9090'],
    ['http://127.0.0.1:9090', 'localhost:9090'],
    ['http://evil.example', '127.0.0.1:9090'],
    ['https://site.example', '127.0.0.1:9090'],
    ['null', '127.0.0.1:9090'],
    ['', '127.0.0.1:9090'],
    ['file://', '127.0.0.1:9090'],
    ['http://localhost:9090, http://evil.example', 'localhost:9090'],
    ['http://localhost:9090@evil.example', 'localhost:9090'],
  ])('of another page is refused: %s', (origin, host) => {
    expect(accepts(() => guard.assertOrigin({ host, origin }))).toBe(false)
  })

  it('that is missing is judged by Sec-Fetch-Site', () => {
    const of = (site: string): boolean => accepts(() => guard.assertOrigin({ 'sec-fetch-site': site }))
    expect(['cross-site', 'same-site', 'same-origin', 'none'].map(of)).toEqual([false, false, true, true])
  })
})

it('a read request is one without a stream and without an upgrade', () => {
  expect(doesMoreThanRead('GET', {})).toBe(false)
  expect(doesMoreThanRead('OPTIONS', { accept: 'text/html' })).toBe(false)
  expect(doesMoreThanRead('GET', { upgrade: 'websocket' })).toBe(true)
  expect(doesMoreThanRead('GET', { accept: '*/*, text/event-stream' })).toBe(true)
  expect(doesMoreThanRead('GET', { accept: 'Text/Event-Stream;q=0.5' })).toBe(true)
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'PURGE'])
    expect(doesMoreThanRead(method, {})).toBe(true)
})
