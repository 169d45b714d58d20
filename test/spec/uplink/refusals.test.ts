/**
 * The queue of refused changes: bounded per uplink by number and bytes; the oldest entries are dropped,
 * logged and counted.
 */
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import { createUplinkStates } from '#store/tables/uplink-states.ts'
import { type BareDoor, openBareDoor } from '#test/kit/bare-door.ts'
import { immortalWriter } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { openDoor, temporaryDatabase } from '#test/kit/door.ts'
import type { StepRefusal } from '#uplink/centre/outcome.ts'
import { createRefusals, type OnDropped } from '#uplink/progress/refusals.ts'
import { addRefusedGaps, refusedGapSteps } from '#uplink/progress/refused-gaps.ts'
import { newState, readState, type UplinkState } from '#uplink/progress/uplink-state.ts'
import { createScopePrefix } from '#uplink/steps/scope-prefix.ts'

const writer = immortalWriter()
afterAll(() => writer.end())
let bare: BareDoor
let events: string[]
beforeEach(async () => {
  bare = await openBareDoor(writer)
  events = []
  state = newState({ n: 0, at: 0 }, undefined)
})
afterEach(async () => {
  restoreLimits()
  await bare.close()
})

const open = () => {
  const states = createUplinkStates(bare.database)
  const log = createLog({
    level: 'info',
    clock: bare.clock,
    write: (line) => events.push((JSON.parse(line) as { event: string }).event),
  })
  return { states, refusals: createRefusals({ states, door: bare.door, clock: bare.clock, log }) }
}
const refused = (count: number, value = ''): readonly StepRefusal[] =>
  Array.from({ length: count }, (_, i) => ({
    reason: '400',
    step: {
      kind: 'put',
      entity: { id: `urn:a:${i}`, type: 'A' },
      attributes: new Map([['v', [{ type: 'Property', value }]]]),
    },
  }))
let state: UplinkState
const letGo: OnDropped = (gone) => {
  const undo = addRefusedGaps(state, gone)
  const text = JSON.stringify(state)
  return { stage: (stage) => stage.write('uplink.put', 'big', text), undo }
}
const toldLetGo = (): number => events.filter((event) => event === 'uplink.refused-let-go').length

it('keeps a number of entries per uplink, also across a restart', async () => {
  const most = limits.uplinkRefusalsMax.value
  const first = open()
  await first.refusals.add('quiet', refused(1), letGo)
  await first.refusals.add('busy', refused(most), letGo)
  expect(first.refusals.dropped('busy')).toBe(0)
  await first.refusals.remove(5)
  await first.refusals.add('busy', refused(1), letGo)
  expect(toldLetGo()).toBe(0)

  await bare.door.commit((stage) => stage.write('uplink.put', 'busy', '{}'))
  const { refusals, states } = open()
  await refusals.add('busy', refused(2), letGo)
  expect([refusals.dropped('busy'), refusals.dropped('quiet'), toldLetGo()]).toEqual([2, 0, 1])
  expect(states.refusalCount()).toBe(most + 1)
  // The only entry of the other uplink is older than all, and stays.
  expect([1, 2, 3, 4].map((q) => states.refusal(q)?.uplink)).toEqual(['quiet', undefined, undefined, 'busy'])
})

it('keeps a number of bytes per uplink', async () => {
  const { refusals, states } = open()
  const part = limits.uplinkRefusalBytesMax.value / 4
  for (let i = 0; i < 3; i++) await refusals.add('big', refused(1, 'x'.repeat(part)), letGo)
  await refusals.add('small', refused(1), letGo)
  expect(refusals.dropped('big')).toBe(0)
  await refusals.add('big', refused(1, 'x'.repeat(part)), letGo)
  expect([refusals.dropped('big'), states.refusalCount(), states.refusal(1)]).toEqual([1, 4, undefined])
  // Dropped entries are reported to the centre, also after a crash.
  const kept = readState(states.get('big')!)
  const { steps, onAccepted } = refusedGapSteps(kept, {
    uplink: 'big',
    alias: 'a',
    scopePrefix: createScopePrefix(undefined),
  })
  expect(steps).toMatchObject([{ kind: 'put', entity: { type: ['HistoryGap'] } }])
  const gap = Object.fromEntries((steps[0] as unknown as { attributes: Map<string, unknown> }).attributes)
  expect(gap).toMatchObject({
    gapOf: [{ object: 'urn:a:0' }],
    gapAttribute: [{ value: 'v' }],
    lostAtMost: [{ value: 1 }],
    reason: [{ value: 'refused' }],
  })
  onAccepted()
  expect(kept.forgone).toEqual({})
})

it('gives no number twice, also across a restart', async () => {
  const first = open()
  await first.refusals.add('up', refused(3), letGo)
  await first.refusals.remove(3)
  const { refusals, states } = open()
  await refusals.add('up', refused(1), letGo)
  expect(states.refusals(9, 0).map(({ q }) => q)).toEqual([4, 2, 1])
})

it('keeps for all removed uplinks together as much as for one, also across a restart', async () => {
  setLimit('uplinkRefusalsMax', 3)
  const first = open()
  for (const uplink of ['one', 'two']) await first.refusals.add(uplink, refused(2), letGo)
  for (const uplink of ['one', 'two']) await first.refusals.forget(uplink)
  const left = (): readonly number[] => first.states.refusals(99, 0).map(({ q }) => q)
  expect(left()).toEqual([4, 3, 2])
  // A new uplink of the same name is another one.
  await first.refusals.add('two', refused(3), letGo)
  expect(left()).toEqual([7, 6, 5, 4, 3, 2])

  await bare.door.commit((stage) => stage.write('uplink.put', 'two', '{}'))
  const again = open().refusals
  await again.forget('two')
  expect(left()).toEqual([7, 6, 5])
  expect(Object.keys(state.forgone)).toEqual([])
})

it('drops and reports entries that are still being written', async () => {
  const { refusals, states } = open()
  const large = 'x'.repeat(limits.uplinkRefusalBytesMax.value * 0.6)
  await Promise.all([1, 2].map(() => refusals.add('big', refused(1, large), letGo)))
  expect([states.refusal(1), states.refusal(2)?.uplink]).toEqual([undefined, 'big'])
  expect(Object.values(readState(states.get('big')!).forgone)).toMatchObject([{ id: 'urn:a:0', count: 1 }])
})

it('counts nothing that was not written to disk', async () => {
  setLimit('uplinkRefusalsMax', 2)
  const temporary = temporaryDatabase()
  const full = new GatewayError('store.full', 'no room')
  let refusal: GatewayError | undefined = full
  const { door, database, close } = await openDoor(temporary.file, { refuse: async () => refusal })
  const log = createLog({ level: 'error', clock: bare.clock, write: () => undefined })
  const states = createUplinkStates(database)
  const refusals = createRefusals({ states, door, clock: bare.clock, log })
  await expect(refusals.add('up', refused(1), letGo)).rejects.toBe(full)
  refusal = undefined
  await refusals.add('up', refused(2), letGo)
  expect([states.refusalCount(), refusals.dropped('up')]).toEqual([2, 0])
  // A dropped entry is reported once, however often the commit is retried.
  refusal = full
  for (let i = 0; i < 2; i++) await expect(refusals.add('up', refused(1), letGo)).rejects.toBe(full)
  refusal = undefined
  await refusals.add('up', refused(1), letGo)
  expect([states.refusalCount(), refusals.dropped('up')]).toEqual([2, 1])
  expect(Object.values(readState(states.get('big')!).forgone)).toMatchObject([{ id: 'urn:a:0', count: 1 }])
  await close()
  temporary.remove()
})
