/** A cut is noticed once for both lanes, and what is answered to one of them holds up that one only. */
import { expect, it } from 'vitest'
import { createLink } from './connectivity.ts'

const answered = (reason: string) => ({ kind: 'later', reason, isUnreachable: false }) as const
const cut = { kind: 'later', reason: 'ECONNREFUSED', isUnreachable: true } as const

function scene() {
  let now = 0
  let isThere = true
  let probes = 0
  const told: string[] = []
  const link = createLink({
    clock: { now: () => now, monotonic: () => now },
    dice: () => 1,
    probe: () => {
      probes++
      return Promise.resolve(isThere)
    },
    onChange: (lane, isUp, reason) => told.push(`${lane} ${isUp ? 'up' : reason}`),
    isShut: () => false,
  })
  return {
    link,
    told,
    probes: () => probes,
    pass: (ms: number) => (now += ms),
    set: (is: boolean) => (isThere = is),
    /** Whether a lane may send now. */
    mayGo: (lane: 'live' | 'backfill'): Promise<boolean> =>
      Promise.race([
        link.ready(lane),
        new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 20)),
      ]),
  }
}

it('who fails at what is past is told what is current', async () => {
  const { link, told, mayGo } = scene()
  for (let i = 0; i < 5; i++) link.failed('backfill', answered('503'))
  expect(await mayGo('live')).toBe(true)
  expect(await mayGo('backfill')).toBe(false)
  link.succeeded('live')
  expect(link.trouble('live')).toBeUndefined()
  expect(link.trouble('backfill')).toMatchObject({ reason: '503' })
  expect(await mayGo('backfill')).toBe(false)
  link.succeeded('backfill')
  expect(told).toEqual(['backfill 503', 'backfill up'])
  link.close()
})

it('a cut is told once, and probed once for both', async () => {
  const { link, told, probes, mayGo, set } = scene()
  set(false)
  link.failed('backfill', cut)
  expect(link.trouble('live')).toMatchObject({ reason: 'ECONNREFUSED' })
  link.failed('live', cut)
  expect(await Promise.all([mayGo('live'), mayGo('backfill')])).toEqual([false, false])
  expect(probes()).toBe(1)
  set(true)
  await expect(Promise.all([link.ready('live'), link.ready('backfill')])).resolves.toEqual([true, true])
  expect(probes()).toBeLessThanOrEqual(3)
  link.succeeded('live')
  expect([link.trouble('live'), link.trouble('backfill')]).toEqual([undefined, undefined])
  expect(told).toEqual(['live ECONNREFUSED', 'live up'])
  link.close()
})

it('history waits no longer when what failed for all is over', async () => {
  const { link, told, mayGo } = scene()
  for (let i = 0; i < 5; i++)
    for (const lane of ['live', 'backfill'] as const) link.failed(lane, answered('500'))
  expect(await mayGo('backfill')).toBe(false)
  link.succeeded('live')
  expect(await mayGo('backfill')).toBe(true)
  expect(told).toEqual(['live 500', 'live up'])
  link.close()
})
