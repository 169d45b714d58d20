/** A cut is noticed once for both lanes, and what is answered to one of them holds up that one only. */
import { expect, it } from 'vitest'
import { createConnectivity } from './connectivity.ts'

const answered = (reason: string) => ({ kind: 'later', reason, isUnreachable: false }) as const
const cut = { kind: 'later', reason: 'ECONNREFUSED', isUnreachable: true } as const

function scene() {
  let now = 0
  let isThere = true
  let probes = 0
  const told: string[] = []
  const connectivity = createConnectivity({
    clock: { now: () => now, monotonic: () => now },
    random: () => 1,
    probe: () => {
      probes++
      return Promise.resolve(isThere)
    },
    onChange: (lane, isUp, reason) => told.push(`${lane} ${isUp ? 'up' : reason}`),
    isGateClosed: () => false,
  })
  return {
    connectivity,
    told,
    probes: () => probes,
    pass: (ms: number) => (now += ms),
    set: (is: boolean) => (isThere = is),
    /** Whether a lane may send now. */
    mayGo: (lane: 'live' | 'backfill'): Promise<boolean> =>
      Promise.race([
        connectivity.ready(lane),
        new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 20)),
      ]),
  }
}

it('who fails at what is past is told what is current', async () => {
  const { connectivity, told, mayGo } = scene()
  for (let i = 0; i < 5; i++) connectivity.failed('backfill', answered('503'))
  expect(await mayGo('live')).toBe(true)
  expect(await mayGo('backfill')).toBe(false)
  connectivity.succeeded('live')
  expect(connectivity.trouble('live')).toBeUndefined()
  expect(connectivity.trouble('backfill')).toMatchObject({ reason: '503' })
  expect(await mayGo('backfill')).toBe(false)
  connectivity.succeeded('backfill')
  expect(told).toEqual(['backfill 503', 'backfill up'])
  connectivity.close()
})

it('a cut is told once, and probed once for both', async () => {
  const { connectivity, told, probes, mayGo, set } = scene()
  set(false)
  connectivity.failed('backfill', cut)
  expect(connectivity.trouble('live')).toMatchObject({ reason: 'ECONNREFUSED' })
  connectivity.failed('live', cut)
  expect(await Promise.all([mayGo('live'), mayGo('backfill')])).toEqual([false, false])
  expect(probes()).toBe(1)
  set(true)
  await expect(Promise.all([connectivity.ready('live'), connectivity.ready('backfill')])).resolves.toEqual([
    true,
    true,
  ])
  expect(probes()).toBeLessThanOrEqual(3)
  connectivity.succeeded('live')
  expect([connectivity.trouble('live'), connectivity.trouble('backfill')]).toEqual([undefined, undefined])
  expect(told).toEqual(['live ECONNREFUSED', 'live up'])
  connectivity.close()
})

it('history waits no longer when what failed for all is over', async () => {
  const { connectivity, told, mayGo } = scene()
  for (let i = 0; i < 5; i++)
    for (const lane of ['live', 'backfill'] as const) connectivity.failed(lane, answered('500'))
  expect(await mayGo('backfill')).toBe(false)
  connectivity.succeeded('live')
  expect(await mayGo('backfill')).toBe(true)
  expect(told).toEqual(['live 500', 'live up'])
  connectivity.close()
})
