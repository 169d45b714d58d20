/** Weights in their three forms, paths in names, and that each error names its term. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parsePath } from './attribute-path.ts'
import { parseRankedQuery, splitQuery } from './ranked-query.ts'
import { parseTerms } from './terms.ts'

const stream = 'http://purl.org/iot/ontology/iot-stream#generatedBy'
const qoi = 'https://w3id.org/iot/qoi#hasQuality'
const of = (value: string) => parseTerms([{ name: 'weights', value }])
const brief = (value: string) =>
  of(value).map(({ name, weight, isFalling }) => [isFalling ? `-${name}` : name, weight])

describe('weights', () => {
  it('are pairs split at the last colon', () => {
    expect(brief('name:0.4,other:0.6')).toEqual([
      ['name', 0.4],
      ['other', 0.6],
    ])
    expect(brief(`${qoi}:1e-1, sosa:observes :2`)).toEqual([
      [qoi, 0.1],
      ['sosa:observes', 2],
    ])
    expect(brief('-price:0.5')).toEqual([['-price', 0.5]])
  })

  it('are a JSON object', () => {
    expect(brief('{"a,b:c":0.4,"-d":"0.6"}')).toEqual([
      ['a,b:c', 0.4],
      ['-d', 0.6],
    ])
  })

  it('are a deep object with any name in brackets', () => {
    const { weights } = splitQuery(
      `type=T&rankWeights[completeness]=0.4&rankWeights%5B${encodeURIComponent(qoi)}%5D=0.6`,
    )
    expect(parseTerms(weights).map(({ name, weight }) => [name, weight])).toEqual([
      ['completeness', 0.4],
      [qoi, 0.6],
    ])
  })

  it.each([
    ['', 'must name at least one property'],
    ['completeness', 'completeness has no weight'],
    ['a:high', 'the weight of a must be a number up to 1000000, got high'],
    ['a:', 'the weight of a'],
    ['a:Infinity', 'the weight of a'],
    ['a:1e400', 'the weight of a'],
    ['a:NaN', 'the weight of a'],
    ['a:0x10', 'the weight of a'],
    [':0.5', 'the name before 0.5 is empty'],
    ['-:0.5', 'is empty'],
    ['a:0.1,,b:2', 'has no weight'],
    ['a:0.1,a:0.2', 'a has two weights'],
    ['{"a":null}', 'the weight of a must be a number up to 1000000, got null'],
    ['{"a":[1]}', 'the weight of a'],
    ['{}', 'must name at least one property'],
    ['{"a":1', 'is not valid JSON'],
    [Array.from({ length: 33 }, (_, at) => `a${at}:1`).join(), 'has 33 terms, at most 32'],
  ])('of %s are rejected', (text, reason) => expect(() => of(text)).toThrow(reason))

  it('without brackets, or given twice, are rejected', () => {
    expect(() => parseTerms([{ name: 'rankWeights', value: '1' }])).toThrow('requires a name in brackets')
    expect(() => parseTerms([{ name: 'rankWeights[]', value: '1' }])).toThrow('is empty')
    const twice = [1, 2].map((value) => ({ name: 'weights', value: `a:${value}` }))
    expect(() => parseTerms(twice)).toThrow('given twice')
  })

  it('are accepted or rejected for any input', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        try {
          expect(of(text).every(({ weight, name }) => Number.isFinite(weight) && name !== '')).toBe(true)
        } catch (error) {
          expect(error).toMatchObject({ code: 'ngsi-ld.bad-request-data' })
        }
      }),
    )
  })
})

describe('paths', () => {
  it.each([
    ['completeness', ['completeness']],
    ['qoi:hasQuality.qoi:completeness', ['qoi:hasQuality', 'qoi:completeness']],
    [`${qoi}.https://w3id.org/iot/qoi#age`, [qoi, 'https://w3id.org/iot/qoi#age']],
    [`${stream}.sosa:observes.label`, [stream, 'sosa:observes', 'label']],
    [`${qoi}.completeness`, [qoi, 'completeness']],
    ['http://schema.org/name', ['http://schema.org/name']],
    ['http://a.example:8080/x.y', ['http://a.example:8080/x.y']],
    ['<http://schema.org/brand>.name', ['http://schema.org/brand', 'name']],
    ['http://www.w3.org/ns/sosa/observes.sosa:label', ['http://www.w3.org/ns/sosa/observes', 'sosa:label']],
  ])('%s is split into names', (text, names) => expect(parsePath(text)).toEqual({ names }))

  it('can end with a criterion', () => {
    expect(parsePath('@freshness')).toEqual({ names: [], criterion: 'freshness' })
    expect(parsePath(`${stream}.@proximity`)).toEqual({ names: [stream], criterion: 'proximity' })
  })

  it.each(['a..b', '.a', 'a.', '@speed', '@freshness.a', 'a.b.c.d.e.f.g.h.i'])('%s is rejected', (text) =>
    expect(parsePath(text)).toHaveProperty('mistake'),
  )
})

describe('a ranked query', () => {
  const rankedQuery = (query: string) => parseRankedQuery(splitQuery(query))

  it('keeps the parameters of the backend as written', () => {
    const parsed = rankedQuery(
      'type=A%2FB&weights=a:1&q=x==%22y%22&limit=5&offset=10&count=true&explain=true',
    )
    expect(parsed.others).toEqual(['type=A%2FB', 'q=x==%22y%22'])
    expect(parsed).toMatchObject({
      limit: 5,
      offset: 10,
      isCounted: true,
      isExplained: true,
      isNormalized: false,
    })
  })

  it('measures proximity from rankPoint, or from the point of its geo-query', () => {
    expect(rankedQuery('weights=@proximity:1&rankPoint=8.6,49.4').yardsticks.point).toEqual([8.6, 49.4])
    const near = 'georel=near;maxDistance==100&geometry=Point&coordinates=%5B8,49%5D'
    expect(rankedQuery(`weights=@proximity:1&${near}`).yardsticks.point).toEqual([8, 49])
  })

  it.each([
    ['weights=@proximity:1', 'rankPoint'],
    ['weights=@proximity:1&rankPoint=900,1', 'rankPoint'],
    ['weights=a:1&normalise=rank', 'normalise'],
    ['weights=a:1&explain=yes', 'explain'],
    ['weights=a:1&limit=-1', 'limit'],
    ['weights=a:1&limit=5000', 'limit'],
    ['weights=a:1&limit=0', 'limit'],
    ['weights=a:1&rankAge=0', 'rankAge'],
    ['weights=a:1&rankAge=1&rankAge=2', 'rankAge'],
    ['weights=a:1&x=%zz', 'percent-encoding'],
    ['weights=a..b:1', 'a..b'],
  ])('%s is rejected', (query, what) => expect(() => rankedQuery(query)).toThrow(what))
})
