/** The selection of streams: results are kept, except for a stream that does not exist yet. */
import { expect, it } from 'vitest'
import type { FollowedStream } from '#broker/changes/change-feed.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { selectionOf } from '#uplink/steps/uplink-selection.ts'
import { createSelectedStreams } from './selected-streams.ts'

const subscription = {
  id: 'urn:up',
  type: 'Subscription',
  entities: [{ type: 'Tank' }],
  notification: { endpoint: { uri: 'http://centre' } },
} as unknown as Subscription

it('looks again for a stream that was unknown at the last check, and not for one that is known', () => {
  const streams = new Map<number, FollowedStream>()
  let lookups = 0
  const check = createSelectedStreams(
    {
      streamOf(s) {
        lookups++
        return streams.get(s)
      },
      lastState: () => undefined,
    },
    selectionOf(subscription),
    () => 0,
  )
  expect(check()(1)).toBe(false)
  streams.set(1, {
    s: 1,
    rid: 1,
    id: 'urn:x',
    type: ['Tank'],
    name: 'level',
    dataset: '',
    mirror: undefined,
    shape: 0,
    shapedAt: 0,
    isEnded: false,
  } as unknown as FollowedStream)
  expect(check()(1)).toBe(true)
  const before = lookups
  expect(check()(1)).toBe(true)
  expect(lookups).toBe(before)
})
