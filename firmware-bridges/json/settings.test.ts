/** The settings of the JSON bridge: the check reports all problems at once, each with its path. */
import { expect, it } from 'vitest'
import { json } from './decoder.ts'
import { checkJsonSettings, type JsonSource } from './settings.ts'

const placesOf = (raw: unknown): string[] => checkJsonSettings(raw).problems.map(({ path }) => path)

it('claims the filters of its topics', () => {
  const sources: readonly JsonSource[] = [
    { topic: 'site/{device}/telemetry', fields: 'auto' },
    { topic: 'up/#', device: 'id', fields: [{ path: 'v' }] },
  ]
  const { settings } = checkJsonSettings(sources)
  expect(json.claims?.(settings!)).toEqual(['site/+/telemetry', 'up/#'])
})

it('accepts no sources', () => expect(checkJsonSettings([])).toEqual({ settings: [], problems: [] }))

it('reports all problems', () => {
  const raw = [
    7,
    { topic: 'a/{b', fields: 'all', devise: 'x' },
    { topic: 'a/b', device: '', items: 3, time: { path: 'x', format: 'utc' }, fields: [] },
    { topic: 'a/b', fields: 'auto' },
    {
      topic: 'a/{device}',
      time: 'ts',
      fields: [
        { path: '[0]' },
        { path: 'a', name: '', unit: 1, unitCode: '', scale: Number.NaN, offset: '1', invalid: [null], x: 1 },
        { path: 'b.same' },
        { path: 'same' },
      ],
    },
    { topic: 'a/{device}/{field}', fields: [{ path: 'a' }, { path: 'b' }] },
  ]
  expect(placesOf(raw)).toEqual([
    '[0]',
    ...['[1].devise', '[1].topic', '[1].fields'],
    ...['[2].device', '[2].items', '[2].time.format', '[2].fields'],
    '[3].device',
    ...['[4].time', '[4].fields[0].name', '[4].fields[1].x', '[4].fields[1].name', '[4].fields[1].unit'],
    ...['[4].fields[1].unitCode', '[4].fields[1].scale', '[4].fields[1].offset', '[4].fields[1].invalid'],
    '[4].fields[3].name',
    '[5].fields[1].name',
  ])
})

it('accepts any input without throwing', () => {
  for (const raw of [null, undefined, {}, 'x', [null], [[]], [{ fields: {} }]])
    expect(placesOf(raw).length).toBeGreaterThan(0)
})
