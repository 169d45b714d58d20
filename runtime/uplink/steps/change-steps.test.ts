/** Past values of a row have the time of their write, which in a batch may precede that of its commit. */
import { expect, it } from 'vitest'
import type { FollowedChange } from '#broker/changes/change-feed.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import { stepsOf } from './change-steps.ts'
import { deletionsAfterPast } from './deletion-steps.ts'
import { createScopePrefix } from './scope-prefix.ts'
import { selectionOf } from './uplink-selection.ts'

const everything = { id: 'urn:up', notification: { endpoint: { uri: 'http://a' } } } as Subscription

it('dates values without observedAt to the start of their batch', () => {
  const label = { type: 'Property', value: 'x' }
  const entity = { id: 'urn:a', type: 'A', label } as Entity
  const times = { created: 100, modified: 100, attributes: {} }
  const view = {
    id: entity.id,
    text: () => JSON.stringify(entity),
    entity: () => entity,
    version: () => 9,
    times: () => times,
  }
  const nothing = () => undefined
  const ports = {
    selection: selectionOf(everything),
    scopePrefix: createScopePrefix(undefined),
    entity: () => view,
    streamOf: nothing,
    instanceOf: () => label,
    tombstoneOf: nothing,
    tombstoneAt: nothing,
    tombstonesAfter: () => [],
    deletionsUnder: () => [],
    isFromCentre: () => false,
  }
  const what: FollowedChange = {
    kind: 'updated',
    id: 'urn:a',
    rid: 1,
    by: 'http',
    at: 100,
    instances: [['label', '', label]],
  }
  const row = { n: 9, at: 105, via: undefined, what }
  expect(stepsOf(row, () => true, ports)).toEqual([
    {
      kind: 'past',
      entity: { id: 'urn:a', type: 'A' },
      via: undefined,
      attributes: new Map([['label', [{ ...label, modifiedAt: msToDateTime(100) }]]]),
    },
  ])
})

it('deletes the attributes of all lives of an entity if none of them was sent', () => {
  const tombstone = (n: number, attributes: object): TombstoneRow => ({
    n,
    rid: n,
    id: 'urn:a',
    at: n * 1000,
    via: null,
    created: null,
    doc: JSON.stringify({ id: 'urn:a', type: 'A', ...attributes }),
  })
  const value = { type: 'Property', value: 1 }
  const tombstones = [
    tombstone(1, { v: value, w: value }),
    tombstone(2, { x: [{ ...value, datasetId: 'urn:d' }] }),
  ]
  const ports = {
    selection: selectionOf(everything),
    scopePrefix: createScopePrefix(undefined),
    entity: () => undefined,
    tombstonesAfter: () => tombstones,
    deletionsUnder: () => [],
    isFromCentre: () => false,
  }
  const steps = deletionsAfterPast({ entity: { id: 'urn:a', type: 'A' }, past: new Map(), lost: [] }, ports)
  expect(steps).toMatchObject([{ kind: 'remove', at: 2000, had: new Set(['v', 'w', 'x urn:d']) }])
})
