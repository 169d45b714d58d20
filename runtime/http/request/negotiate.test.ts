/** Headers and parameters as typed values. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isGatewayError } from '#base/register/errors.ts'
import { listOf, pagingOf } from '#ngsi-ld/query/url-parameters.ts'
import { workTime } from '#test/kit/calm-time.ts'
import {
  answerType,
  assertDecodable,
  bodyType,
  contextRelation,
  linkedContext,
  optionsOf,
  parametersOf,
} from './negotiate.ts'

const json = 'application/json'
const ld = 'application/ld+json'
const known = new Set(['type', 'limit', 'offset', 'count', 'options', 'format', 'attrs'])
const parameters = (query: string) => parametersOf(`http://localhost/x?${query}`, known)

describe('the type of the answer', () => {
  it.each([
    [undefined, json],
    ['*/*', json],
    [json, json],
    [ld, ld],
    ['application/*', json],
    [`${json}, ${ld}`, json],
    [`${ld}, ${json}`, json],
    [`${ld};q=0.9, ${json};q=0.5`, ld],
    [`${json};q=0, */*`, ld],
    ['text/html, application/xhtml+xml, */*;q=0.8', json],
    [`${ld}; q=1.0, */*; q=0.1`, ld],
    [`APPLICATION/LD+JSON`, ld],
    ['application/geo+json, application/json;q=0.2', json],
  ])('of %s is %s', (accept, type) => expect(answerType(accept, json)).toBe(type))

  it('is the configured default if the client accepts any', () => {
    expect(answerType(undefined, ld)).toBe(ld)
    expect(answerType('text/html, */*;q=0.1', ld)).toBe(ld)
    expect(answerType(json, ld)).toBe(json)
  })

  it.each(['text/html', 'application/geo+json', `${json};q=0, ${ld};q=0`, 'nonsense', `${json};q=7`])(
    'cannot be found for %s',
    (accept) => expect(() => answerType(accept, json)).toThrow(/application\/json, application\/ld\+json/),
  )
})

describe('the type of the body', () => {
  it.each([json, ld, `${ld}; charset=utf-8`, 'Application/JSON;charset="UTF-8"'])('takes %s', (type) => {
    expect([json, ld]).toContain(bodyType(type, [json, ld]))
  })
  it.each([undefined, '', 'text/plain', `${json}; charset=latin1`, 'json'])('refuses %s', (type) => {
    expect(() => bodyType(type, [json, ld])).toThrow(/send application\/json or/)
  })
})

describe('the @context of a Link header', () => {
  const rel = `rel="${contextRelation}"`
  it.each([
    [undefined, undefined],
    [`<https://a.example/c.jsonld>; ${rel}; type="application/ld+json"`, 'https://a.example/c.jsonld'],
    [`<https://a.example/c,d;e.jsonld>;${rel}`, 'https://a.example/c,d;e.jsonld'],
    [
      `<https://a.example/x>; rel=next, <https://a.example/c>; title="a, \\"b\\" <c>"; ${rel}`,
      'https://a.example/c',
    ],
    [`<https://a.example/c>; REL=${contextRelation}`, 'https://a.example/c'],
    ['<https://a.example/x>; rel="next"', undefined],
    ['', undefined],
  ])('of %s is %s', (link, address) => expect(linkedContext(link)).toBe(address))

  it.each([
    [`<https://a.example/c>; ${rel}, <https://b.example/c>; ${rel}`, /more than one/],
    [`<c.jsonld>; ${rel}`, /not an absolute URL/],
    [`<file:///etc/passwd>; ${rel}`, /not an absolute URL/],
    [`https://a.example/c; ${rel}`, /cannot be read/],
    [`<https://a.example/c`, /cannot be read/],
    [`<https://a.example/c>; title="open`, /cannot be read/],
  ])('is refused in %s', (link, message) => expect(() => linkedContext(link)).toThrow(message))

  it('is parsed in time proportional to the header', () => {
    const worked = workTime()
    for (const text of [`<a>;${' '.repeat(16_000)}x`, `<a>${';a=b'.repeat(4000)}"`, '<'.repeat(16_000)]) {
      try {
        linkedContext(text)
      } catch {}
    }
    expect(worked()).toBeLessThan(500)
  })
})

describe('query parameters', () => {
  it('are decoded', () => {
    expect([...parameters('type=a%20b&options=x+y')]).toEqual([
      ['type', 'a b'],
      ['options', 'x y'],
    ])
    expect(parametersOf('http://localhost/x', known).size).toBe(0)
    expect(parametersOf('http://localhost/x?', known).size).toBe(0)
  })
  it('are refused by name when unknown or repeated', () => {
    expect(() => parameters('nope=1')).toThrow(/unknown query parameter nope/)
    expect(() => parameters('type=1&type=2')).toThrow(/type is given twice/)
  })
  it('are refused when not decodable', () => {
    for (const url of ['/x?q=%', '/x?q=%zz', '/%ff', '/x?a=%c3%28'])
      expect(() => assertDecodable(url)).toThrow(/percent/)
    expect(() => assertDecodable('/x?q=%C3%A4%25')).not.toThrow()
  })
  it('give paging', () => {
    expect(pagingOf(parameters(''))).toEqual({ limit: 50, offset: 0, count: false })
    expect(pagingOf(parameters('limit=1000&offset=7&count=true'))).toEqual({
      limit: 1000,
      offset: 7,
      count: true,
    })
    expect(pagingOf(parameters('limit=0&count=true')).limit).toBe(0)
    const asOption = parameters('options=count,keyValues&limit=1')
    expect(pagingOf(asOption).count).toBe(true)
    expect([...optionsOf(asOption, ['keyValues'])]).toEqual(['keyValues'])
    expect(pagingOf(parameters('options=count&count=false')).count).toBe(false)
  })
  it.each([
    ['limit=0', 'ngsi-ld.bad-request-data'],
    ['limit=0&count=false', 'ngsi-ld.bad-request-data'],
    ['limit=-1', 'ngsi-ld.bad-request-data'],
    ['limit=1e3', 'ngsi-ld.bad-request-data'],
    ['limit=', 'ngsi-ld.bad-request-data'],
    ['offset=-5', 'ngsi-ld.bad-request-data'],
    ['offset=x', 'ngsi-ld.bad-request-data'],
    ['limit=1001', 'ngsi-ld.too-many-results'],
    ['limit=99999999999999999999', 'ngsi-ld.bad-request-data'],
    ['count=1', 'ngsi-ld.bad-request-data'],
  ])('%s raises %s', (query, code) => {
    try {
      pagingOf(parameters(query))
      expect.unreachable()
    } catch (error) {
      expect(isGatewayError(error) && error.code).toBe(code)
    }
  })
  it('give lists and options', () => {
    expect(listOf(parameters('attrs=a, b'), 'attrs')).toEqual(['a', 'b'])
    expect(listOf(parameters(''), 'attrs')).toBeUndefined()
    expect(() => listOf(parameters('attrs=a,,b'), 'attrs')).toThrow(/empty item/)
    expect([...optionsOf(parameters('options=keyValues,sysAttrs'), ['keyValues', 'sysAttrs'])]).toHaveLength(
      2,
    )
    expect(() => optionsOf(parameters('options=keyvalues'), ['keyValues'])).toThrow(
      /unsupported option keyvalues/,
    )
    expect(() => optionsOf(parameters('format=x'), ['keyValues'])).toThrow(/format must be one of/)
  })
})

describe('whatever a client sends', () => {
  it('yields a value or a registered error', () => {
    const attempt = (action: () => unknown): void => {
      try {
        action()
      } catch (error) {
        expect(isGatewayError(error)).toBe(true)
      }
    }
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        attempt(() => answerType(text, json))
        attempt(() => bodyType(text, [json]))
        attempt(() => linkedContext(text))
        attempt(() => assertDecodable(text))
        attempt(() => pagingOf(parametersOf(`http://x/?${text}`, known)))
      }),
    )
    // The first text of any characters takes seconds to make on a busy machine.
  })
})
