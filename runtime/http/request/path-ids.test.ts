/** Paths whose ids or names have slashes: what is meant, and what is left as it is. */
import { expect, it } from 'vitest'
import { workTime } from '#test/kit/calm-time.ts'
import { pathSegment, withSlashesEncoded } from './path-ids.ts'

const host = 'http://x:9090'
const entities = '/ngsi-ld/v1/entities/'

it.each([
  ['urn:a:b/c', 'urn:a:b%2Fc'],
  ['urn:a:b/c/', 'urn:a:b%2Fc'],
  ['urn:a:b/c?options=keyValues&q=a==%22/%22', 'urn:a:b%2Fc?options=keyValues&q=a==%22/%22'],
  ['urn:a:b/c/attrs', 'urn:a:b%2Fc/attrs'],
  ['urn:a:b/c/attrs/', 'urn:a:b%2Fc/attrs'],
  ['urn:a:b/attrs/http://x.org/y', 'urn:a:b/attrs/http:%2F%2Fx.org%2Fy'],
  ['http://x.org/1/attrs/http://x.org/y/', 'http:%2F%2Fx.org%2F1/attrs/http:%2F%2Fx.org%2Fy'],
])('understands %s', (sent, meant) => {
  expect(withSlashesEncoded(host + entities + sent)).toBe(host + entities + meant)
})

it('understands other resources, too', () => {
  for (const name of ['temporal/entities', 'subscriptions', 'types', 'attributes', 'jsonldContexts']) {
    const path = `/ngsi-ld/v1/${name}/`
    expect(withSlashesEncoded(`${host}${path}urn:a:b/c`)).toBe(`${host}${path}urn:a:b%2Fc`)
  }
})

it.each([
  `${entities}urn:a:b`,
  `${entities}urn:a:b%2Fc`,
  `${entities}urn:a:b/attrs/c`,
  `${entities}urn:a:b/attrs/`,
  `${entities}no/uri`,
  `${entities}/`,
  '/ngsi-ld/v1/info/urn:a:b/c',
  '/nowhere?x=/ngsi-ld/v1/entities/urn:a:b/c',
])('leaves %s unchanged', (path) => expect(withSlashesEncoded(host + path)).toBeUndefined())

it('is fast for paths built to be slow', () => {
  const worked = workTime()
  for (const part of ['/attrs', '/attrs/', ':/', '/ngsi-ld/v1/entities/', '?', 'a:/attrs/a'])
    withSlashesEncoded(`${host}${entities}a:${part.repeat(3000)}\n`)
  expect(worked()).toBeLessThan(500)
})

it('writes ids into paths', () => expect(pathSegment('urn:a:b/c d%')).toBe('urn:a:b%2Fc%20d%25'))
