/** Translation of requests to another @context: it changes every name and nothing else. */
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext } from '#ngsi-ld/context/context.ts'
import { translateBody, translatePath } from './translation.ts'

const contextOf = (terms: Json): Context => compileContext(terms, () => undefined) as Context
const from = contextOf({ Pump: 'http://x.org/Pump', flow: 'http://x.org/flow', big: 'http://x.org/big' })
const to = contextOf({ Pumpe: 'http://x.org/Pump', fluss: 'http://x.org/flow', gross: 'http://x.org/big' })
const body = (path: string, value: Json): Json => translateBody(path, value, [{ from, to }])
const entities = '/ngsi-ld/v1/entities'

describe('the translation of a body', () => {
  it('translates names of types and attributes at every depth, and no values', () => {
    const given = {
      id: 'urn:p:1',
      type: ['Pump', 'Other'],
      '@context': { flow: 'http://x.org/flow' },
      scope: '/flow',
      flow: { type: 'Property', value: { flow: 'flow' }, observedAt: 'flow', big: { value: 'big' } },
      size: [{ vocab: 'big' }, { type: 'VocabProperty', vocab: ['big', 'small'], datasetId: 'urn:d:1' }],
      place: { type: 'Point', coordinates: [1, 2] },
      near: { type: 'Relationship', object: 'urn:p:2', objectType: 'Pump' },
      plain: 'flow',
    }
    expect(body(entities, given)).toEqual({
      id: 'urn:p:1',
      type: ['Pumpe', 'Other'],
      scope: '/flow',
      fluss: { type: 'Property', value: { flow: 'flow' }, observedAt: 'flow', gross: { value: 'big' } },
      size: [{ vocab: 'gross' }, { type: 'VocabProperty', vocab: ['gross', 'small'], datasetId: 'urn:d:1' }],
      place: { type: 'Point', coordinates: [1, 2] },
      near: { type: 'Relationship', object: 'urn:p:2', objectType: 'Pumpe' },
      plain: 'flow',
    })
  })

  it('leaves values of simplified entities unchanged', () => {
    const given = { flow: { type: 'x', value: 1, big: 2 }, size: { vocab: 'big' } }
    expect(body(`${entities}/urn:p:1?options=keyValues`, given)).toEqual({
      fluss: given.flow,
      size: { vocab: 'gross' },
    })
  })

  it('treats the body as an attribute, a query, or a list, depending on the path', () => {
    const attribute = { value: 1, big: { value: 2 } }
    expect(body(`${entities}/urn:p:1/attrs/flow`, attribute)).toEqual({ value: 1, gross: { value: 2 } })
    const query = {
      type: 'Query',
      entities: [{ type: 'Pump;Other', id: 'urn:p:1' }],
      attrs: ['flow'],
      q: 'flow.big>1;flow=="flow"',
      geoQ: { georel: 'within', geoproperty: 'flow' },
    }
    expect(body('/ngsi-ld/v1/entityOperations/query', query)).toEqual({
      type: 'Query',
      entities: [{ type: 'Pumpe;Other', id: 'urn:p:1' }],
      attrs: ['fluss'],
      q: 'fluss.gross>1;fluss=="flow"',
      geoQ: { georel: 'within', geoproperty: 'fluss' },
    })
    const items = [{ flow: 1 }, { fluss: 1 }, 'urn:flow:1']
    const contexts = [from, to, to].map((each) => ({ from: each, to }))
    expect(translateBody('/ngsi-ld/v1/entityOperations/update', items, contexts)).toEqual([
      { fluss: 1 },
      { fluss: 1 },
      'urn:flow:1',
    ])
  })
})

describe('the translation of a path', () => {
  const path = (text: string): string => decodeURIComponent(translatePath(text, { from, to }))
  it('translates names in the path and in parameters, and nothing else', () => {
    expect(path(`${entities}/urn:flow/attrs/flow`)).toBe(`${entities}/urn:flow/attrs/fluss`)
    expect(path('/ngsi-ld/v1/types/Pump')).toBe('/ngsi-ld/v1/types/Pumpe')
    expect(path(`${entities}?type=(Pump|A);B&pick=id,flow{big}&q=flow~="flow"&id=urn:flow&local=true`)).toBe(
      `${entities}?type=(Pumpe,A);B&pick=id,fluss{gross}&q=fluss~="flow"&id=urn:flow&local=true`,
    )
  })
})
