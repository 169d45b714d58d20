/**
 * Foreign attributes by modification times: values written long after their deletion here are foreign, except
 * resurrected past values.
 */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { clockLeadMs, foreignByTimes } from './foreign-attributes.ts'

const at = Date.UTC(2026, 0, 1)
const margin = limits.uplinkArrivalMs.value
const time = (ms: number): string => msToDateTime(at + ms)
const theirs = (members: object, ahead = 0, went: { at?: number } = { at }): unknown => {
  const there = { id: 'urn:a', type: 'A', ...members } as unknown as Entity
  return foreignByTimes(new Map([['urn:a', there]]), [{ entity: there, ...went }], {
    now: at + 9 * margin,
    ahead,
  }).keysById.get('urn:a')
}
const property = (times: object): object => ({ type: 'Property', value: 1, ...times })

it.each([
  ['before', property({ modifiedAt: time(-1) }), []],
  ['just after, as what was on its way is', property({ modifiedAt: time(margin) }), []],
  ['long after', property({ modifiedAt: time(margin + 1) }), ['v']],
  ['long after, and never again', property({ createdAt: time(margin + 1) }), ['v']],
  ['long after, as past that was sent', property({ modifiedAt: time(margin + 1), observedAt: time(0) }), []],
  ['long after, and observed then', property({ modifiedAt: time(margin + 1), observedAt: time(1) }), ['v']],
])('written %s', (_, v, keys) => expect(theirs({ v })).toEqual(keys))

it('distinguishes datasets', () => {
  const dataset = (n: number, ms: number): object => ({
    ...property({ modifiedAt: time(ms) }),
    datasetId: `urn:d:${n}`,
  })
  expect(theirs({ v: [dataset(1, -1), dataset(2, margin + 1), property({ modifiedAt: time(0) })] })).toEqual([
    'v urn:d:2',
  ])
})

it('falls back to the creation time of the entity, and names an entity without attributes', () => {
  expect(theirs({ v: property({}) })).toEqual([])
  expect(theirs({ v: property({}), createdAt: time(margin + 1) })).toEqual(['v'])
  expect(theirs({ createdAt: time(margin + 1), modifiedAt: time(margin + 1) })).toEqual([''])
  expect(theirs({ createdAt: time(0), modifiedAt: time(margin + 1) })).toEqual([])
})

it('parses times with more digits than the standard allows', () => {
  const modifiedAt = time(margin + 1).replace('Z', '000000Z')
  expect(theirs({ v: property({ modifiedAt }) })).toEqual(['v'])
})

it('uses the clock of the centre, and 0 without a Date header', () => {
  const v = property({ modifiedAt: time(margin + 5000) })
  expect(theirs({ v }, 6000)).toEqual([])
  expect(theirs({ v }, 4000)).toEqual(['v'])
  expect(theirs({ v }, 0, {})).toEqual([])
  expect(clockLeadMs({ date: new Date(at + 7000).toUTCString() }, at)).toBe(7000)
  expect(clockLeadMs({ date: 'today' }, at)).toBe(0)
  expect(clockLeadMs({}, at)).toBe(0)
})
