/**
 * The daily byte limit: no day exceeds it by more than a minimum per lane, and history leaves a reserve to
 * live values that shrinks during the day.
 */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { PeerRequest } from '#federation/peer.ts'
import { createConnectivity } from '#uplink/centre/connectivity.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import { newState } from '#uplink/progress/uplink-state.ts'
import { createGate } from './gate.ts'

const day = Date.UTC(2026, 0, 2)
const hour = 3_600_000
const body = 'x'.repeat(1000)
const request: PeerRequest = { method: 'POST', url: 'http://centre/a', headers: {}, body, timeoutMs: 1000 }

/** A gate at a time of day, and how many of a number of requests it passes on a lane without waiting. */
function gateAt(begin: number, bytesPerDay: number) {
  let now = begin
  const clock = { now: () => now, monotonic: () => now - begin }
  const state = newState({ n: 0, at: 0 }, undefined)
  const connectivity = createConnectivity({
    clock,
    random: () => 0,
    probe: () => Promise.resolve(true),
    onChange: () => undefined,
    isGateClosed: () => false,
  })
  const sent: Lane[] = []
  const answer = { status: 204, headers: {}, text: '' }
  const peer = { exchange: () => Promise.resolve(answer), close: () => undefined }
  const gate = createGate(
    {
      peer,
      clock,
      state,
      connectivity: () => connectivity,
      isHeld: () => false,
      windows: { isOpen: () => true },
    },
    { bytesPerDay, windows: [], thinSeconds: 60, isPaused: false },
  )
  return {
    gate,
    state,
    close: connectivity.close,
    at(time: number) {
      now = time
    },
    /** The number of requests before one has to wait. */
    async send(lane: Lane): Promise<number> {
      const before = sent.length
      while (gate.closedBy(lane) === undefined) {
        const gone = gate
          .peer(lane)
          .exchange(request)
          .then(() => sent.push(lane))
        const isGone = await Promise.race([
          gone.then(() => true),
          new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 20)),
        ])
        if (!isGone) break
      }
      return sent.length - before
    },
  }
}

it('gives half of the day to history at first, and the rest to live values', async () => {
  const { gate, state, send, close } = gateAt(day, 100_000)
  const history = await send('backfill')
  expect(state.day.bytes).toBeLessThanOrEqual(50_000)
  expect(state.day.bytes).toBeGreaterThan(48_000)
  expect([gate.closedBy('backfill'), gate.closedBy('live')]).toEqual(['bytes-per-day', undefined])
  const live = await send('live')
  expect(state.day.bytes).toBeLessThanOrEqual(100_000)
  expect(live).toBeGreaterThanOrEqual(history)
  expect(gate.closedBy('live')).toBe('bytes-per-day')
  close()
})

it('gives the remainder to history towards the end of the day, and starts over the next day', async () => {
  const { gate, state, send, at, close } = gateAt(day + 18 * hour, 100_000)
  await send('backfill')
  expect(state.day.bytes).toBeGreaterThan(85_000)
  expect(state.day.bytes).toBeLessThanOrEqual(87_500)
  at(day + 24 * hour - 1)
  await send('backfill')
  expect(state.day.bytes).toBeGreaterThan(98_000)
  expect(state.day.bytes).toBeLessThanOrEqual(100_000)
  at(day + 24 * hour)
  expect([gate.closedBy('backfill'), gate.closedBy('live')]).toEqual([undefined, undefined])
  close()
})

it.each([
  ['live', 'backfill'],
  ['backfill', 'live'],
] as const)(
  'lets %s send a minimum each day, however small the limit and whatever %s used',
  async (lane, other) => {
    const { gate, state, send, at, close } = gateAt(day + 6 * hour, 3000)
    for (const days of [0, 1, 2]) {
      at(day + days * 24 * hour + 6 * hour)
      await send(other)
      const before = state.day.bytes
      const sent = await send(lane)
      expect(sent).toBeGreaterThan(0)
      expect(gate.closedBy(lane)).toBe('bytes-per-day')
      // No more than the minimum and one request.
      expect(state.day.bytes - before).toBeLessThan(limits.uplinkDayLeastBytes.value + 1200)
    }
    close()
  },
)

it('rejects a request that waited too long, and sends it when nothing is in the way', async () => {
  const { gate, state, send, at, close } = gateAt(day + 6 * hour, 3000)
  const ask = () => gate.peer('live').exchange({ ...request, heldMs: -1 })
  expect(await ask()).toMatchObject({ status: 204 })
  await send('live')
  const bytes = state.day.bytes
  const held = ask()
  await new Promise((resolve) => setTimeout(resolve, 20))
  at(day + 24 * hour)
  expect(await held).toMatchObject({ isHeldUp: true })
  expect(state.day.bytes).toBeLessThanOrEqual(bytes)
  expect(await ask()).toMatchObject({ status: 204 })
  close()
})
