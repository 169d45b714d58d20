/** Compiled contexts: expansion, compaction and rejected contexts. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { refusal } from '#test/kit/refusal.ts'
import { type Context, compileContext, coreContext, createCoreContext } from './context.ts'

const core = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.9.jsonld'
const oldCore = 'http://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld'
const sosa = 'http://www.w3.org/ns/sosa/'
const none = (): undefined => undefined

function compile(local: Json, documents: Record<string, Json> = {}): Context {
  const context = compileContext(local, (url) => documents[url])
  if (!('expand' in context)) throw new TypeError(`missing ${context.missing}`)
  return context
}

describe('the core context', () => {
  it('applies if no other context is given', () => {
    for (const local of [core, oldCore, [oldCore, core], [], null]) expect(compile(local)).toBe(coreContext)
    expect(coreContext).toMatchObject({ key: core, isCore: true, reference: [core] })
  })

  it('keeps core and default-context terms short and all other names full', () => {
    const { expand, compact } = coreContext
    expect(expand('https://uri.etsi.org/ngsi-ld/location')).toBe('location')
    expect(expand('ngsi-ld:location')).toBe('location')
    expect(expand('https://uri.etsi.org/ngsi-ld/default-context/temperature')).toBe('temperature')
    expect(expand('@type')).toBe('type')
    expect(expand(`${sosa}Sensor`)).toBe(`${sosa}Sensor`)
    expect(compact(`${sosa}Sensor`)).toBe(`${sosa}Sensor`)
    expect(compact('https://uri.etsi.org/ngsi-ld/unheardOf')).toBe('https://uri.etsi.org/ngsi-ld/unheardOf')
    expect(expand('sosa:Sensor')).toBe('sosa:Sensor')
    for (const name of ['temperature', 'location', 'constructor', 'toString']) {
      expect(expand(name)).toBe(name)
      expect(compact(name)).toBe(name)
    }
  })

  it('of another version changes only the address in responses', () => {
    const old = createCoreContext('1.0')
    expect(old.isCore).toBe(true)
    expect(compileContext({ sosa }, none, old)).toMatchObject({
      reference: [{ sosa }, 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld'],
    })
  })
})

describe('a user context', () => {
  it('resolves prefixes, terms, aliases and full IRIs', () => {
    const { expand, compact, isCore } = compile([
      oldCore,
      { sosa, Sensor: 'sosa:Sensor', Fühler: 'Sensor', hosts: { '@id': 'sosa:hosts', '@type': '@id' } },
    ])
    for (const term of ['sosa:Sensor', 'Sensor', 'Fühler', `${sosa}Sensor`])
      expect(expand(term)).toBe(`${sosa}Sensor`)
    expect(expand('hosts')).toBe(`${sosa}hosts`)
    expect(compact(`${sosa}Sensor`)).toBe('Fühler')
    expect(compact(`${sosa}hosts`)).toBe('hosts')
    expect(compact(`${sosa}madeBySensor`)).toBe('sosa:madeBySensor')
    expect(isCore).toBe(false)
  })

  it('gives the core precedence at any position', () => {
    const { expand, compact } = compile([
      core,
      {
        location: 'http://schema.org/location',
        'ngsi-ld': 'http://x.org/',
        here: 'https://uri.etsi.org/ngsi-ld/location',
      },
    ])
    expect(expand('location')).toBe('location')
    expect(expand('ngsi-ld:value')).toBe('https://uri.etsi.org/ngsi-ld/value')
    expect(expand('here')).toBe('location')
    expect(compact('location')).toBe('location')
    expect(compact('http://schema.org/location')).toBe('http://schema.org/location')
  })

  it('expands all aliases of one IRI and compacts to the shortest, then first', () => {
    const { expand, compact } = compile({
      sosa,
      'hosts#2': 'sosa:hosts',
      'hosts#10': 'sosa:hosts',
      'hosts#1': 'sosa:hosts',
      'sosa:hosts#3': 'http://www.w3.org/ns/sosa/hosts',
    })
    for (const alias of ['hosts#1', 'hosts#2', 'hosts#10', 'sosa:hosts#3'])
      expect(expand(alias)).toBe(`${sosa}hosts`)
    expect(compact(`${sosa}hosts`)).toBe('hosts#1')
  })

  it('never compacts a name into one with another meaning', () => {
    const { expand, compact } = compile({
      temperature: 'http://x.org/t',
      x: 'http://x.org/',
      'x:u': 'http://y.org/u',
    })
    expect(compact('temperature')).toBe('ngsi-ld:default-context/temperature')
    expect(expand(compact('temperature'))).toBe('temperature')
    expect(compact('http://x.org/u')).toBe('http://x.org/u')
    expect(compact('http://x.org/v')).toBe('x:v')
  })

  it('accepts prefixes as JSON-LD 1.1 does', () => {
    const { expand } = compile({
      a: 'http://a.org/x',
      b: { '@id': 'http://b.org/' },
      c: { '@id': 'http://c.org/x', '@prefix': true },
      _: 'http://d.org/',
    })
    expect(expand('a:y')).toBe('a:y')
    expect(expand('b:y')).toBe('b:y')
    expect(expand('c:y')).toBe('http://c.org/xy')
    expect(expand('a://y')).toBe('a://y')
  })

  it('expands a term defined by its prefix alone with that prefix', () => {
    const { expand, compact } = compile({
      issue: { '@id': 'http://x.org/issue/', '@type': '@id' },
      'issue:raisedBy': { '@container': '@set' },
      'issue:closedBy': 'issue:closedBy',
      'other:term': { '@type': '@id' },
    })
    expect(expand('issue:raisedBy')).toBe('http://x.org/issue/raisedBy')
    expect(expand('issue:closedBy')).toBe('http://x.org/issue/closedBy')
    expect(compact('http://x.org/issue/raisedBy')).toBe('issue:raisedBy')
    expect(expand('issue:unnamed')).toBe('issue:unnamed')
    expect(expand('other:term')).toBe('other:term')
  })

  it('uses @vocab for its own definitions, not for unknown names', () => {
    const { expand } = compile({
      '@vocab': 'http://v.org/',
      speed: { '@type': '@id' },
      pace: 'tempo',
      '@base': 'http://b/',
    })
    expect(expand('speed')).toBe('http://v.org/speed')
    expect(expand('pace')).toBe('http://v.org/tempo')
    expect(expand('unknown')).toBe('unknown')
  })

  it('replaces earlier definitions by later ones, removes by null, restarts after null', () => {
    const { expand, reference } = compile([
      { gone: 'http://x.org/gone' },
      null,
      { a: 'http://x.org/a', b: 'http://x.org/b' },
      { a: 'http://y.org/a', b: null },
    ])
    expect(['a', 'b', 'gone'].map((name) => expand(name))).toEqual(['http://y.org/a', 'b', 'gone'])
    expect(reference).toHaveLength(3)
  })

  it('treats inherited member names as ordinary names', () => {
    const { expand, compact } = compile(
      JSON.parse('{"__proto__": "http://x.org/p", "constructor": "http://x.org/c"}') as Json,
    )
    expect(expand('__proto__')).toBe('__proto__')
    expect(expand('constructor')).toBe('http://x.org/c')
    expect(compact('http://x.org/p')).toBe('http://x.org/p')
    expect(expand('hasOwnProperty')).toBe('hasOwnProperty')
  })

  it('uses its address or its text as key', () => {
    const documents = { 'https://x.org/c': { '@context': { a: 'http://x.org/a' } } }
    expect(compile(['https://x.org/c', core], documents).key).toBe('https://x.org/c')
    expect(compile([{ sosa }, core]).key).toBe(compile({ sosa }).key)
    expect(compile({ sosa }).key).not.toBe(compile({ ssn: sosa }).key)
  })

  it('resolves more names than it caches', () => {
    const { expand, compact } = compile({ sosa })
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < limits.contextNamesKeptMax.value + 10; i++) {
        expect(compact(expand(`sosa:n${i}`))).toBe(`sosa:n${i}`)
      }
    }
  })
})

describe('documents', () => {
  it('that are invalid are named, each by its own address', () => {
    const documents: Record<string, Json> = {
      'https://x.org/a': { '@context': ['https://x.org/b', { c: 'http://x.org/c' }] },
      'https://x.org/b': { '@context': { speed: { '@id': 7 } } },
    }
    const reason = refusal(() => compile([{ d: 'http://x.org/d' }, 'https://x.org/a'], documents))
    expect(reason).toBe('bad-request-data @context.speed.@id: must be an IRI (in https://x.org/b)')
    expect(refusal(() => compile({ speed: { '@id': 7 } }))).toBe(
      'bad-request-data @context.speed.@id: must be an IRI',
    )
  })

  it('that are missing are listed, all of one level at once', () => {
    expect(compileContext(['https://x.org/a', core, 'https://x.org/b'], none)).toEqual({
      missing: ['https://x.org/a', 'https://x.org/b'],
    })
    const documents: Record<string, Json> = { 'https://x.org/a': { '@context': ['b', oldCore, '/c'] } }
    expect(compileContext('https://x.org/a', (url) => documents[url])).toEqual({
      missing: ['https://x.org/b', 'https://x.org/c'],
    })
  })

  it('may refer to other contexts and the core', () => {
    const documents: Record<string, Json> = {
      'https://x.org/a': { '@context': [core, 'https://x.org/b', { speed: 'x:speed' }] },
      'https://x.org/b': { '@context': { x: 'http://x.org/' } },
    }
    const { expand, reference } = compile('https://x.org/a', documents)
    expect(expand('speed')).toBe('http://x.org/speed')
    expect(reference).toEqual(['https://x.org/a'])
    expect(compile(['https://x.org/b', core], documents).reference).toEqual(['https://x.org/b', core])
    expect(compile([core, 'https://x.org/b', 'https://x.org/a'], documents).reference).toEqual([
      'https://x.org/b',
      'https://x.org/a',
    ])
    expect(compile(['https://x.org/a', null, 'https://x.org/b'], documents).reference).toEqual([
      'https://x.org/b',
      core,
    ])
  })

  it('have an address if a single one identifies the context', () => {
    const documents = { 'https://x.org/a': { '@context': {} } }
    expect(compile(['https://x.org/a', core], documents).address).toBe('https://x.org/a')
    expect(compile(['https://x.org/a', { sosa }], documents).address).toBeUndefined()
    expect(compile(core).address).toBe(core)
  })
})

describe('rejected contexts', () => {
  const loop = { 'https://x.org/a': { '@context': 'https://x.org/a' } }
  const wide = { 'https://x.org/a': { '@context': {} } }
  const chain = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`t${i}`, `t${i + 1}`]))
  const many = Object.fromEntries(
    Array.from({ length: limits.contextTermsMax.value + 1 }, (_, i) => [`t${i}`, `http://x.org/${i}`]),
  )
  it.each<[string, Json, Record<string, Json>, RegExp]>([
    ['a number', 5, {}, /@context/],
    ['another scheme', 'file:///etc/passwd', {}, /file:.*not an http/],
    ['a relative address', 'context.jsonld', {}, /context.jsonld/],
    ['a document without @context', 'https://x.org/a', { 'https://x.org/a': { a: 1 } }, /no @context/],
    ['a document that is a list', 'https://x.org/a', { 'https://x.org/a': [] }, /no @context/],
    ['a loop', 'https://x.org/a', loop, /levels/],
    ['too many documents', Array.from({ length: 100 }, () => 'https://x.org/a'), wide, /documents/],
    ['nested lists', JSON.parse(`${'['.repeat(50)}${']'.repeat(50)}`), {}, /levels/],
    ['@import', { '@import': 'https://x.org/a' }, {}, /@import/],
    ['a scoped context', { a: { '@id': 'http://x.org/a', '@context': {} } }, {}, /@context\.a.*scoped/],
    ['@reverse', { a: { '@reverse': 'http://x.org/a' } }, {}, /@context\.a.*@reverse/],
    ['a definition that is a number', { a: 5 }, {}, /@context\.a/],
    ['a deep definition', { a: { '@id': 'http://x.org/a', '@type': [[[]]] } }, {}, /@context\.a/],
    ['a definition with other members', { a: { id: 'http://x.org/a' } }, {}, /@context\.a: id is not/],
    ['a deep keyword', { '@language': { en: {} } }, {}, /@context\.@language/],
    ['an @id that is a number', { a: { '@id': 5 } }, {}, /@context\.a\.@id/],
    ['a @vocab that is a number', { '@vocab': 5 }, {}, /@vocab/],
    ['a circle of terms', { a: 'b', b: 'a' }, {}, /@context\.a.*itself/],
    ['a chain of terms', chain, {}, /too many levels/],
    ['too many terms', many, {}, /terms/],
  ])('%s', (_, local, documents, reason) => expect(refusal(() => compile(local, documents))).toMatch(reason))
})
