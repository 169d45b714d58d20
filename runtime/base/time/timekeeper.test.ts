/**
 * The gateway's clock on machines whose system clock is wrong, is set, or jumps; the test advances the time.
 */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { ClockEvent } from './clock.ts'
import { createTimekeeper, type Timekeeper } from './timekeeper.ts'

const floor = Date.UTC(2026, 0, 1)
const noon = Date.UTC(2026, 5, 1, 12)
const day = 86_400_000

/** A machine whose clock the test sets and advances. */
function machine(wall: number, believe: 'plausible' | 'synced' | 'always' = 'plausible') {
  const state = {
    wall,
    mono: 5000,
    setAt: undefined as number | undefined,
    isAwaited: false,
    events: [] as ClockEvent[],
  }
  const start = (lastCommit = 0, boot = 'b1'): Timekeeper => {
    const keeper = createTimekeeper(
      {
        system: { now: () => state.wall, monotonic: () => state.mono },
        boot,
        bootedMs: 100_000,
        floor,
        evidence: () => ({ setAt: state.setAt, isAwaited: state.isAwaited }),
      },
      { believe },
    )
    keeper.trust.watch((event) => state.events.push(event))
    keeper.trust.notBefore(lastCommit)
    return keeper
  }
  const pass = (ms: number, keeper?: Timekeeper): void => {
    for (let left = ms; left > 0; left -= limits.clockCheckMs.value) {
      const step = Math.min(left, limits.clockCheckMs.value)
      state.wall += step
      state.mono += step
      keeper?.check()
    }
  }
  return { state, start, pass }
}

describe('the clock of a machine', () => {
  it('equals the system clock while its time is plausible', () => {
    const { start, pass } = machine(noon)
    const keeper = start(noon - 1000)
    expect(keeper.now()).toBe(noon)
    expect(keeper.trust.status()).toMatchObject({ state: 'coarse', jumps: 0 })
    expect(keeper.trust.mayRemove()).toBe(true)
    pass(10_000, keeper)
    expect(keeper.now()).toBe(noon + 10_000)
    expect(keeper.trust.stretch()).toBeUndefined()
    expect(keeper.trust.believedMs()).toBe(Number.POSITIVE_INFINITY)
  })

  it('follows slow corrections of the system clock in both directions', () => {
    const { state, start, pass } = machine(noon)
    const keeper = start()
    for (const by of [1500, -1500, -1900, 1900]) {
      state.wall += by
      pass(1000, keeper)
      expect(keeper.now()).toBe(state.wall)
    }
    expect(keeper.trust.status().jumps).toBe(0)
  })

  it('starts after the last commit if the system clock is earlier, and advances', () => {
    const { start, pass } = machine(1000)
    const keeper = start(noon - 1)
    expect(keeper.trust.status()).toMatchObject({
      state: 'unsynced',
      reason: expect.stringContaining('1970-01-01'),
    })
    expect(keeper.now()).toBe(noon)
    pass(7000, keeper)
    expect(keeper.now()).toBe(noon + 7000)
    expect(keeper.trust.mayRemove()).toBe(false)
  })

  it('never starts before the release date of the version', () => {
    expect(machine(1000).start().now()).toBe(floor)
  })

  it('reports the correction when the clock is set, also for stamps before a restart in the same boot', () => {
    const { state, start, pass } = machine(1000)
    const before = start(noon - 1).trust.stretch()!
    pass(60_000)
    const keeper = start(noon + 60_000 - 1)
    const after = keeper.trust.stretch()!
    expect(keeper.trust.correction(before)).toBeUndefined()
    pass(5000, keeper)
    expect(after.shift).toBeUndefined()
    state.setAt = 1
    state.wall = noon + 30 * day + 65_000
    keeper.check()
    expect(keeper.now()).toBe(state.wall)
    expect(keeper.trust.status().state).toBe('synced')
    // Both periods have the same correction: 30 days.
    expect(keeper.trust.correction(before)).toBe(30 * day)
    expect(after.shift).toBe(keeper.trust.correction(after))
    expect(after.shift).toBe(30 * day)
    expect(state.events.at(-1)).toEqual({ kind: 'synced', reason: '', by: 30 * day })
  })

  it('corrects no stamps of another boot', () => {
    const { start } = machine(noon)
    expect(start().trust.correction({ boot: 'another', offset: 5 })).toBe(0)
  })

  it('waits for a time source on a board without a battery, although the time is plausible', () => {
    const { state, start, pass } = machine(noon)
    state.isAwaited = true
    const keeper = start(noon - day / 2)
    expect(keeper.trust.status().state).toBe('unsynced')
    expect(keeper.now()).toBe(noon)
    pass(3000, keeper)
    state.setAt = 1
    state.wall += day
    keeper.check()
    expect(keeper.trust.status().state).toBe('synced')
    expect(keeper.now()).toBe(noon + 3000 + day)
  })

  it('does not follow a short jump to 2038 and back', () => {
    const { state, start, pass } = machine(noon)
    const keeper = start(noon - 1000)
    state.wall = Date.UTC(2038, 0, 19)
    expect(keeper.now()).toBe(noon)
    pass(120_000, keeper)
    expect(keeper.now()).toBe(noon + 120_000)
    expect(keeper.trust.mayRemove()).toBe(false)
    const stretch = keeper.trust.stretch()!
    state.wall = noon + 120_000
    pass(1000, keeper)
    expect(keeper.now()).toBe(noon + 121_000)
    expect(stretch.shift).toBe(0)
    expect(keeper.trust.believedMs()).toBe(0)
    pass(5000, keeper)
    expect(keeper.trust.believedMs()).toBe(5000)
    expect(keeper.trust.mayRemove()).toBe(true)
    expect(state.events.map(({ kind }) => kind)).toEqual(['jumped', 'unsynced', 'coarse'])
    expect(keeper.trust.status().jumps).toBe(1)
  })

  it.each([-3 * day, 3 * day])('follows a jump by %d ms that lasts', (by) => {
    const { state, start, pass } = machine(noon)
    const keeper = start(noon - 10 * day)
    pass(limits.clockRemovalMs.value, keeper)
    state.wall += by
    pass(1000, keeper)
    const stretch = keeper.trust.stretch()!
    pass(limits.clockConfirmMs.value - 2000, keeper)
    expect(keeper.trust.stretch()).toBe(stretch)
    pass(3000, keeper)
    expect(keeper.trust.stretch()).toBeUndefined()
    expect(stretch.shift).toBe(by)
    expect(keeper.now()).toBe(state.wall)
    // The new time may still be wrong, so nothing is removed because of its age.
    expect(keeper.trust.mayRemove()).toBe(by < 0)
    pass(limits.clockRemovalMs.value, keeper)
    expect(keeper.trust.mayRemove()).toBe(true)
  })

  it('follows a jump at once when a time source confirms it', () => {
    const { state, start, pass } = machine(noon)
    state.setAt = 1
    const keeper = start()
    state.wall += 5 * day
    state.setAt = 2
    pass(1000, keeper)
    expect(keeper.now()).toBe(state.wall)
    expect(keeper.trust.status()).toMatchObject({ state: 'synced', jumps: 1 })
    state.wall += 5 * day
    pass(1000, keeper)
    expect(keeper.trust.status().state).toBe('unsynced')
    state.setAt = 3
    pass(1000, keeper)
    expect(keeper.trust.status().state).toBe('synced')
    expect(keeper.now()).toBe(state.wall)
  })

  it('returns no time twice while in doubt, although the clock was set back', () => {
    const { state, start, pass } = machine(noon)
    state.setAt = 1
    const keeper = start(noon - 1000)
    const before = keeper.now()
    state.wall -= 20_000
    state.setAt = 2
    pass(1000, keeper)
    expect(keeper.now()).toBe(before - 19_000)
    state.wall += day
    pass(1000, keeper)
    const { shift: _, ...then } = keeper.trust.stretch()!
    const inDoubt = keeper.now()
    expect(inDoubt).toBeGreaterThan(before)
    // The system clock returns to its earlier offset; the gateway's clock had another one.
    state.wall -= day
    pass(1000, keeper)
    expect(keeper.trust.stretch()).toBeUndefined()
    expect(keeper.now()).toBe(before - 17_000)
    expect(inDoubt + keeper.trust.correction(then)!).toBe(before - 18_000)
  })

  it('starts an unsynced period after the last commit, also of an earlier process', () => {
    const { state, start, pass } = machine(noon)
    state.setAt = 1
    const keeper = start(noon + 30_000)
    expect(keeper.now()).toBe(noon)
    state.wall += day
    pass(1000, keeper)
    expect(keeper.now()).toBe(noon + 30_001)
  })

  it('never follows an impossible time, however long it lasts', () => {
    const { state, start, pass } = machine(noon)
    const keeper = start(noon)
    state.wall = 0
    pass(2 * limits.clockConfirmMs.value, keeper)
    expect(keeper.trust.status().state).toBe('unsynced')
    expect(keeper.now()).toBe(noon + 2 * limits.clockConfirmMs.value)
  })

  it('is trusted when a time source set it, although a commit has a later time', () => {
    const { state, start } = machine(noon)
    state.setAt = 1
    const keeper = start(noon + 365 * day)
    expect(keeper.trust.status().state).toBe('synced')
    expect(keeper.now()).toBe(noon)
  })

  it('delays removal by age after a long, unexplained power-off', () => {
    const { start, pass } = machine(noon)
    const keeper = start(noon - 30 * day)
    expect(keeper.trust.mayRemove()).toBe(false)
    pass(limits.clockRemovalMs.value, keeper)
    expect(keeper.trust.mayRemove()).toBe(true)
  })

  it('removes by age at once if nothing was committed', () => {
    expect(machine(noon).start(0).trust.mayRemove()).toBe(true)
  })

  it('obeys the settings: always trusted, or trusted only after it was set', () => {
    const always = machine(1000, 'always')
    const keeper = always.start(noon)
    expect(keeper.now()).toBe(1000)
    always.state.wall = 5 * day
    always.pass(1000, keeper)
    expect(keeper.now()).toBe(5 * day + 1000)
    expect(keeper.trust.status()).toMatchObject({ state: 'synced', jumps: 0 })
    expect(machine(noon, 'synced').start().trust.status().state).toBe('unsynced')
  })
})
