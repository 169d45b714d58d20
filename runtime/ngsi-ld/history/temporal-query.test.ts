/** Parsing temporal requests and rendering temporal responses. */
import { describe, expect, it } from 'vitest'
import { compileContext, coreContext } from '#ngsi-ld/context/context.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import {
  type Evolution,
  parseTemporalSelection,
  renderEvolution,
  type TimedInstance,
} from './temporal-query.ts'

const at = (second: number): number => Date.UTC(2025, 0, 1) + second * 1000
const seen = (second: number, more: object = {}): TimedInstance => ({
  instance: { type: 'Property', value: second, observedAt: msToDateTime(at(second)), ...more },
  observedAt: at(second),
  createdAt: at(second + 100),
  modifiedAt: at(second + 100),
  instanceId: `urn:i:${second}`,
})
const evolution = (attributes: Record<string, readonly TimedInstance[]>): Evolution => ({
  id: 'urn:x:1',
  type: 'https://a.example/T',
  attributes: new Map(Object.entries(attributes)),
})
const plain = { context: coreContext, timeproperty: 'observedAt', sysAttrs: false, values: false } as const

describe('a temporal selection', () => {
  it('selects everything by observedAt by default', () => {
    expect(parseTemporalSelection({})).toEqual({ timeproperty: 'observedAt' })
  })
  it('has its times in milliseconds', () => {
    const between = {
      timerel: 'between',
      timeAt: msToDateTime(at(1)),
      endTimeAt: msToDateTime(at(2)),
      timeproperty: 'modifiedAt',
    }
    expect(parseTemporalSelection(between)).toEqual({
      timerel: 'between',
      timeAtMs: at(1),
      endTimeAtMs: at(2),
      timeproperty: 'modifiedAt',
    })
  })
})

describe('an evolution', () => {
  it('shows instances in the terms of the context', () => {
    const context = compileContext({ T: 'https://a.example/T', v: 'https://a.example/v' }, () => undefined)
    if ('missing' in context) return expect.unreachable()
    const rendered = renderEvolution(evolution({ 'https://a.example/v': [seen(1)] }), {
      ...plain,
      context,
      sysAttrs: true,
    })
    expect(rendered).toEqual({
      id: 'urn:x:1',
      type: 'T',
      v: [
        {
          type: 'Property',
          value: 1,
          observedAt: msToDateTime(at(1)),
          instanceId: 'urn:i:1',
          createdAt: msToDateTime(at(101)),
          modifiedAt: msToDateTime(at(101)),
        },
      ],
    })
  })

  it('shows values with the requested time, separately by kind and dataset', () => {
    const to: TimedInstance = { ...seen(3), instance: { type: 'Relationship', object: 'urn:x:2' } }
    const mixed = evolution({ v: [seen(1), seen(2, { datasetId: 'urn:d:1' }), to] })
    const types = { ...mixed, type: ['T', 'U'] }
    expect(renderEvolution(types, { ...plain, values: true, timeproperty: 'modifiedAt' })).toEqual({
      id: 'urn:x:1',
      type: ['T', 'U'],
      v: [
        { type: 'Property', values: [[1, msToDateTime(at(101))]] },
        { type: 'Property', datasetId: 'urn:d:1', values: [[2, msToDateTime(at(102))]] },
        { type: 'Relationship', objects: [['urn:x:2', msToDateTime(at(103))]] },
      ],
    })
  })
})
