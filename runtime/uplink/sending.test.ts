/** Whoever is told something for the first time says before that how far it is, also where the first of it is past. */
import { expect, it } from 'vitest'
import type { Centre } from './centre.ts'
import type { Gate } from './gate.ts'
import { createLink } from './link.ts'
import { done } from './outcome.ts'
import type { Step } from './plan.ts'
import { createSending } from './sending.ts'
import { newState } from './state.ts'

it.each(['put', 'past'] as const)('%s', async (kind) => {
  const order: string[] = []
  const clock = { now: () => 0, monotonic: () => 0 }
  const link = createLink({
    ...{ clock, dice: () => 0, probe: () => Promise.resolve(true) },
    ...{ onChange: () => undefined, isShut: () => false },
  })
  const centre = {
    send: () => {
      order.push('sent')
      return Promise.resolve(done())
    },
  } as unknown as Centre
  const sending = createSending({
    ...{ state: newState({ n: 0, at: 0 }, undefined), link, clock },
    centres: { live: centre, backfill: centre },
    gate: { taken: () => undefined } as unknown as Gate,
    told: () => undefined,
    bury: () => Promise.resolve(),
    look: async () => order.push('looked'),
    onChanged: () => undefined,
  })
  const level = [{ type: 'Property', value: 1, observedAt: '2026-01-01T00:00:00Z' } as const]
  const step: Step = { kind, entity: { id: 'urn:T:1', type: 'T' }, attributes: new Map([['level', level]]) }
  for (let i = 0; i < 2; i++) expect(await sending.deliverAll([step], { from: 0, to: 1 })).toBe(true)
  expect(order).toEqual(['looked', 'sent', 'sent'])
  link.close()
})
