/** A centre that turns out to be an older copy is compared with, and what was let go beside what it lost is told as missing no more. */
import { expect, it } from 'vitest'
import { createCentre } from './centre.ts'
import { type ComparingPorts, createComparing } from './comparing.ts'
import { createLink } from './link.ts'
import { createPlacing } from './placing.ts'
import { newState } from './state.ts'

it('forgets what is not told yet when the other broker was restored', async () => {
  const clock = { now: () => 5000, monotonic: () => performance.now() }
  const state = newState({ n: 7, at: 900 }, undefined)
  let said: object = { position: 40 }
  let forgot = 0
  const peer = {
    close: () => undefined,
    exchange: ({ url }: { url: string }) =>
      Promise.resolve({
        ...{ status: 200, headers: {} },
        text: JSON.stringify(url.endsWith('/info') ? { selvedge: '0' } : said),
      }),
  }
  const centre = createCentre(peer, { base: 'http://centre/ngsi-ld/v1', headers: {}, alias: 'here' }, clock)
  const link = createLink({
    ...{ clock, dice: () => 0, probe: () => Promise.resolve(true) },
    ...{ onChange: () => undefined, isShut: () => false },
  })
  const look = (): Promise<boolean> =>
    createComparing({
      ...{ id: 'up', state, link, clock, alias: 'here', centres: { live: centre, backfill: centre } },
      losses: { forget: () => forgot++ },
      log: { warn: () => undefined },
      reading: { placing: createPlacing(undefined), selection: { types: undefined } },
    } as unknown as ComparingPorts).look()
  expect(await look()).toBe(true)
  expect([state.centreAt, state.reconcile, forgot]).toEqual([40, undefined, 0])
  said = { position: 41, restoredAt: 4000 }
  expect(await look()).toBe(true)
  expect([state.centreAt, state.mayLackGaps, forgot]).toEqual([41, true, 1])
  expect(state.reconcile).toMatchObject({ reason: 'restored' })
  link.close()
})
