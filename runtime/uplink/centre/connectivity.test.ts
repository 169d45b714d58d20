/** An outage is reported once for both lanes; a failed response holds up only its own lane. */
import { expect, it } from 'vitest'
import { createConnectivity } from './connectivity.ts'

const answered = (reason: string) => ({ kind: 'later', reason, isUnreachable: false }) as const
const cut = { kind: 'later', reason: 'ECONNREFUSED', isUnreachable: true } as const

function scene() {
  let now = 0
  let isThere = true
  let probes = 0
  const sent: string[] = []
  const connectivity = createConnectivity({
    clock: { now: () => now, monotonic: () => now },
    random: () => 1,
    probe: () => {
      probes++
      return Promise.resolve(isThere)
    },
    onChange: (lane, isUp, reason) => sent.push(`${lane} ${isUp ? 'up' : reason}`),
    isGateClosed: () => false,
  })
  return {
    connectivity,
    sent,
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

it('keeps sending current values to a centre that fails on past ones', async () => {
  const { connectivity, sent, mayGo } = scene()
  for (let i = 0; i < 5; i++) connectivity.failed('backfill', answered('503'))
  expect(await mayGo('live')).toBe(true)
  expect(await mayGo('backfill')).toBe(false)
  connectivity.succeeded('live')
  expect(connectivity.trouble('live')).toBeUndefined()
  expect(connectivity.trouble('backfill')).toMatchObject({ reason: '503' })
  expect(await mayGo('backfill')).toBe(false)
  connectivity.succeeded('backfill')
  expect(sent).toEqual(['backfill 503', 'backfill up'])
  connectivity.close()
})

it('reports an outage once and probes once for both lanes', async () => {
  const { connectivity, sent, probes, mayGo, set } = scene()
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
  expect(sent).toEqual(['live ECONNREFUSED', 'live up'])
  connectivity.close()
})

it('resumes history when a failure of both lanes is over', async () => {
  const { connectivity, sent, mayGo } = scene()
  for (let i = 0; i < 5; i++)
    for (const lane of ['live', 'backfill'] as const) connectivity.failed(lane, answered('500'))
  expect(await mayGo('backfill')).toBe(false)
  connectivity.succeeded('live')
  expect(await mayGo('backfill')).toBe(true)
  expect(sent).toEqual(['live 500', 'live up'])
  connectivity.close()
})

it('ends a rest when it is woken, but no pause', async () => {
  const { connectivity } = scene()
  const ended: string[] = []
  const hour = 3_600_000
  void connectivity.sleep(hour).then(() => ended.push('pause'))
  const rest = connectivity.rest(hour).then(() => ended.push('rest'))
  connectivity.wake()
  await rest
  expect(ended).toEqual(['rest'])
  const next = connectivity.rest(hour)
  connectivity.close()
  await expect(next).resolves.toBeUndefined()
})
