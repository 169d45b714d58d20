/**
 * Past values that the centre fails on become history for the backfill lane, but only after all current
 * values were sent.
 */
import { afterEach, expect, it } from 'vitest'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { PeerRequest } from '#federation/peer.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createCentralBroker } from '#uplink/centre/central-broker.ts'
import { createConnectivity } from '#uplink/centre/connectivity.ts'
import { newState } from '#uplink/progress/uplink-state.ts'
import { createScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { createGate } from './gate.ts'
import { createSending } from './send-lanes.ts'

afterEach(restoreLimits)

const clock = { now: () => 5000, monotonic: () => performance.now() }
const base = 'http://centre/ngsi-ld/v1'
const dated = { from: 1000, to: 3001 }

/** Steps of one entity: each current value comes with a past value. */
const steps = [1, 2].flatMap((n): readonly Step[] => {
  const entity = { id: `urn:tank:${n}`, type: ['Tank'] }
  const observedAt = `2026-01-01T00:00:0${n}Z`
  const of = (name: string): Step & { kind: 'put' } => ({
    kind: 'put',
    entity,
    via: undefined,
    attributes: new Map([[name, [{ type: 'Property', value: n, observedAt }]]]),
  })
  return [{ ...of('gone'), kind: 'past' }, of('level')]
})

const notFound = '{"type":"https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound"}'
const entityOf = (id: string): Entity => ({ id, type: ['Tank'], level: { type: 'Property', value: 1 } })
const viewOf = (id: string) => ({ entity: () => entityOf(id) }) as EntityView
const tombstoneOf = (id: string) => ({ id, doc: JSON.stringify(entityOf(id)) }) as TombstoneRow

/** Sends to a broker that responds to histories with a status, and accepts everything else when allowed. */
function sendingTo(
  pastStatus: number,
  spans: readonly { from: number; to: number }[] = [],
  { bytesPerSecond, knows = [] }: { bytesPerSecond?: number; knows?: readonly string[] } = {},
) {
  const state = newState({ n: 7, at: 900 }, undefined)
  state.spans.push(...spans.map((span) => ({ ...span })))
  state.counts.sent = 1
  const ports = { clock, random: () => 0, probe: () => Promise.resolve(true) }
  const connectivity = createConnectivity({ ...ports, onChange: () => undefined, isGateClosed: () => false })
  let puts = 0
  let open = (): void => undefined
  const sent: string[] = []
  const isLet = new Promise<void>((resolve) => (open = resolve))
  const peer = {
    close: () => undefined,
    async exchange({ url, body }: PeerRequest) {
      const isOther = bytesPerSecond !== undefined
      if (isOther && url.endsWith('/info')) return { status: 404, headers: {}, text: notFound }
      if (url.endsWith('/info')) return { status: 200, headers: {}, text: '{"selvedge":"0"}' }
      if (url.includes('/temporal/')) return { status: pastStatus, headers: {}, text: '' }
      puts++
      sent.push(...(JSON.parse(body as string) as { id: string }[]).map(({ id }) => id))
      await isLet
      return { status: 204, headers: {}, text: '' }
    },
  }
  const gate = createGate(
    {
      peer,
      clock,
      state,
      connectivity: () => connectivity,
      isHeld: () => false,
      windows: { isOpen: () => true },
    },
    { windows: [], thinSeconds: 60, isPaused: false, ...(bytesPerSecond && { bytesPerSecond }) },
  )
  const centre = createCentralBroker(gate.peer('live'), { base, headers: {}, alias: 'here' }, clock)
  const sending = createSending({
    state,
    connectivity,
    gate,
    clock,
    centres: { live: centre, backfill: centre },
    onOutcome: () => undefined,
    saveRefusals: () => Promise.resolve(),
    checkCentre: () => Promise.resolve(),
    onChanged: () => undefined,
    lookups: {
      entity: (id) => (knows.includes(id) ? viewOf(id) : undefined),
      tombstonesAfter: (id) => [tombstoneOf(id)],
      isFromCentre: () => false,
      scopePrefix: createScopePrefix(undefined),
    },
  })
  return { sending, state, connectivity, puts: () => puts, let: () => open(), sent }
}

it('leaves past values to backfill after the current ones were sent, so that history does not overtake them', async () => {
  const { sending, state, connectivity, puts, let: letGo } = sendingTo(503)
  const all = sending.deliverAll(steps, dated)
  await expect.poll(puts).toBe(1)
  expect(connectivity.trouble('backfill')).toMatchObject({ reason: 'answered 503 ' })
  expect(state.spans).toEqual([])
  letGo()
  expect(await all).toBe(true)
  expect(state.spans).toEqual([{ ...dated, level: 'full', began: 1000 }])
  connectivity.close()
})

it.each([
  ['behind what waits', { from: 0, to: 500 }, [{ from: 0, to: 3001 }]],
  [
    'of what may have gone up',
    { from: 2000, to: 2500 },
    [
      { from: 2000, to: 2500 },
      { from: 1000, to: 3001 },
    ],
  ],
  ['that waits', { from: 0, to: 9000 }, [{ from: 0, to: 9000 }]],
])('leaves past values to backfill without a hole: %s', async (_, span, expected) => {
  const { sending, state, connectivity, let: letGo } = sendingTo(503, [span])
  letGo()
  expect(await sending.deliverAll(steps, dated)).toBe(true)
  expect(state.spans).toMatchObject(expected)
  connectivity.close()
})

it('leaves nothing to backfill if past values were accepted or the uplink was closed', async () => {
  const taken = sendingTo(204)
  taken.let()
  expect(await taken.sending.deliverAll(steps, dated)).toBe(true)
  expect([taken.state.spans, taken.state.counts.past]).toEqual([[], 2])
  const closed = sendingTo(503)
  closed.connectivity.close()
  expect(await closed.sending.deliverAll(steps, dated)).toBe(false)
  expect(closed.state.spans).toEqual([])
  taken.connectivity.close()
})

it('sends a value deleted while it waited as past, not as current', async () => {
  setLimit('uplinkBehindMs', 300)
  const knows = ['urn:tank:1', 'urn:tank:2']
  const {
    sending,
    state,
    connectivity,
    sent,
    let: letGo,
  } = sendingTo(503, [], { bytesPerSecond: 400, knows })
  letGo()
  const put = (id: string): Step => ({
    kind: 'put',
    entity: { id, type: ['Tank'] },
    attributes: new Map([['level', [{ type: 'Property', value: 'x'.repeat(500) }]]]),
  })
  // The bytes sent first use up the rate limit.
  expect(await sending.deliverAll([put('urn:tank:1')], dated)).toBe(true)
  const all = sending.deliverAll([put('urn:tank:2'), put('urn:tank:1')], dated)
  knows.shift()
  expect(await all).toBe(true)
  expect(sent).toEqual(['urn:tank:1', 'urn:tank:2'])
  expect([state.counts.refused, connectivity.trouble('live')]).toEqual([0, undefined])
  connectivity.close()
})

it('sends nothing that is no longer valid, and waits until this can be checked', async () => {
  const { sending, puts, let: letGo, connectivity } = sendingTo(204)
  letGo()
  const layer = { kind: 'put', via: undefined, steps: [steps[1]!] } as const
  const known: (boolean | undefined)[] = [undefined, false, true]
  const isStill = () => Promise.resolve(known.shift())
  expect(await sending.deliver('backfill', layer, isStill)).toBe(true)
  expect([puts(), known]).toEqual([0, [true]])
  expect(await sending.deliver('backfill', layer, isStill)).toBe(true)
  expect(puts()).toBe(1)
  connectivity.close()
})
