/** A put that waited long is sent as past for attributes deleted meanwhile, and nothing is sent twice. */
import { expect, it } from 'vitest'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import { createScopePrefix } from './scope-prefix.ts'
import { splitStale } from './stale-puts.ts'
import type { Step } from './step-plan.ts'

const instance = (value: number, datasetId?: string): AttributeInstance => ({
  type: 'Property',
  value,
  ...(datasetId === undefined ? {} : { datasetId }),
})
const put = (id: string, attributes: Record<string, AttributeInstance[]>): Step => ({
  kind: 'put',
  entity: { id, type: 'A' },
  attributes: new Map(Object.entries(attributes)),
})
const lookups = (...entities: readonly Entity[]) => ({
  entity: (id: string) => {
    const found = entities.find((one) => one.id === id)
    return found && ({ entity: () => found } as EntityView)
  },
  tombstonesAfter: (id: string) =>
    id === 'urn:gap' ? [] : [{ id, doc: JSON.stringify({ id, type: 'A', scope: '/hall' }) } as TombstoneRow],
  isFromCentre: () => false,
  scopePrefix: createScopePrefix('/site'),
})
const layer = (...steps: readonly Step[]) => ({ kind: 'put' as const, via: undefined, steps })

it('keeps a put whose attributes all exist', () => {
  const here = { id: 'urn:a', type: 'A', v: [instance(2), instance(3, 'urn:d')] } as Entity
  const step = put('urn:a', { v: [instance(1), instance(1, 'urn:d')] })
  expect(splitStale(layer({ ...step, before: step } as unknown as Step), lookups(here))).toBeUndefined()
})

it('turns the put of a deleted entity into past values, and sends the rest once', () => {
  const here = { id: 'urn:b', type: 'A', v: instance(2) } as Entity
  const deep = { ...put('urn:b', { v: [instance(1)] }), before: new Map([['v', [instance(0)]]]) } as Step
  expect(
    splitStale(layer(put('urn:a', { v: [instance(1)] }), deep, put('urn:c', {})), lookups(here)),
  ).toEqual([
    {
      kind: 'past',
      steps: [
        {
          kind: 'past',
          entity: { id: 'urn:a', type: 'A', scope: '/site/hall' },
          attributes: new Map([['v', [instance(1)]]]),
        },
      ],
    },
    { kind: 'put', steps: [put('urn:b', { v: [instance(1)] })] },
  ])
})

it('turns only deleted attributes into past values', () => {
  const here = { id: 'urn:a', type: 'A', v: instance(2, 'urn:d') } as Entity
  const step = put('urn:a', { v: [instance(1), instance(1, 'urn:d')], w: [instance(1)] })
  expect(splitStale(layer(step), lookups(here))).toEqual([
    {
      kind: 'past',
      steps: [{ ...put('urn:a', { v: [instance(1)], w: [instance(1)] }), kind: 'past' }],
    },
    { kind: 'put', steps: [put('urn:a', { v: [instance(1, 'urn:d')] })] },
  ])
})

it('keeps a put of an entity that never existed here, such as a gap', () => {
  expect(splitStale(layer(put('urn:gap', { v: [instance(1)] })), lookups())).toBeUndefined()
})

it('turns a put into past values if its entity was re-created with another type', () => {
  const here = { id: 'urn:a', type: ['B'], v: instance(2) } as unknown as Entity
  const [sent, ...others] = splitStale(layer(put('urn:a', { v: [instance(1)] })), lookups(here)) ?? []
  expect(sent).toMatchObject({ kind: 'past', steps: [{ attributes: new Map([['v', [instance(1)]]]) }] })
  expect(others).toEqual([])
  const more = { id: 'urn:a', type: ['A', 'B'], v: instance(2) } as unknown as Entity
  expect(splitStale(layer(put('urn:a', { v: [instance(1)] })), lookups(more))).toBeUndefined()
})
