/**
 * The clock over that of a machine that is wrong, is set, and jumps; time passes by hand.
 */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { ClockEvent } from './clock.ts'
import { createTimekeeper, type Timekeeper } from './timekeeper.ts'

const floor = Date.UTC(2026, 0, 1)
const noon = Date.UTC(2026, 5, 1, 12)
const day = 86_400_000

/** A machine whose clock can be set, on which time passes by hand. */
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
        ...{ boot, bootedMs: 100_000, floor },
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
      keeper?.look()
    }
  }
  return { state, start, pass }
}

describe('the clock of a machine', () => {
  it('is what the system says while nothing speaks against it', () => {
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

  it('goes with slow corrections of the system, back and forth', () => {
    const { state, start, pass } = machine(noon)
    const keeper = start()
    for (const by of [1500, -1500, -1900, 1900]) {
      state.wall += by
      pass(1000, keeper)
      expect(keeper.now()).toBe(state.wall)
    }
    expect(keeper.trust.status().jumps).toBe(0)
  })

  it('begins behind the last commit where the system says less, and runs on', () => {
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

  it('never begins before the version was made', () => {
    expect(machine(1000).start().now()).toBe(floor)
  })

  it('knows the difference when it is set, for what this boot did before a restart as well', () => {
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
    keeper.look()
    expect(keeper.now()).toBe(state.wall)
    expect(keeper.trust.status().state).toBe('synced')
    // Both say the same of the same instant: 30 days later than they stamped it.
    expect(keeper.trust.correction(before)).toBe(30 * day)
    expect(after.shift).toBe(keeper.trust.correction(after))
    expect(after.shift).toBe(30 * day)
    expect(state.events.at(-1)).toEqual({ kind: 'synced', reason: '', by: 30 * day })
  })

  it('says of another boot that its times stand', () => {
    const { start } = machine(noon)
    expect(start().trust.correction({ boot: 'another', offset: 5 })).toBe(0)
  })

  it('waits for its time on a board without battery, though the time could be', () => {
    const { state, start, pass } = machine(noon)
    state.isAwaited = true
    const keeper = start(noon - day / 2)
    expect(keeper.trust.status().state).toBe('unsynced')
    expect(keeper.now()).toBe(noon)
    pass(3000, keeper)
    state.setAt = 1
    state.wall += day
    keeper.look()
    expect(keeper.trust.status().state).toBe('synced')
    expect(keeper.now()).toBe(noon + 3000 + day)
  })

  it('is not led to 2038 and back', () => {
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
    // What is too old by it may still be wrongly so.
    expect(keeper.trust.mayRemove()).toBe(by < 0)
    pass(limits.clockRemovalMs.value, keeper)
    expect(keeper.trust.mayRemove()).toBe(true)
  })

  it('follows a jump at once when what sets clocks says that it did', () => {
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

  it('tells no time twice while it is in doubt, though it had been set back', () => {
    const { state, start, pass } = machine(noon)
    state.setAt = 1
    const keeper = start(noon - 1000)
    const told = keeper.now()
    state.wall -= 20_000
    state.setAt = 2
    pass(1000, keeper)
    expect(keeper.now()).toBe(told - 19_000)
    state.wall += day
    pass(1000, keeper)
    const { shift: _, ...then } = keeper.trust.stretch()!
    const inDoubt = keeper.now()
    expect(inDoubt).toBeGreaterThan(told)
    // Back where it was, though our clock is elsewhere.
    state.wall -= day
    pass(1000, keeper)
    expect(keeper.trust.stretch()).toBeUndefined()
    expect(keeper.now()).toBe(told - 17_000)
    expect(inDoubt + keeper.trust.correction(then)!).toBe(told - 18_000)
  })

  it('begins a doubt behind the last commit, also of a process before', () => {
    const { state, start, pass } = machine(noon)
    state.setAt = 1
    const keeper = start(noon + 30_000)
    expect(keeper.now()).toBe(noon)
    state.wall += day
    pass(1000, keeper)
    expect(keeper.now()).toBe(noon + 30_001)
  })

  it('does not follow where no clock could be, however long', () => {
    const { state, start, pass } = machine(noon)
    const keeper = start(noon)
    state.wall = 0
    pass(2 * limits.clockConfirmMs.value, keeper)
    expect(keeper.trust.status().state).toBe('unsynced')
    expect(keeper.now()).toBe(noon + 2 * limits.clockConfirmMs.value)
  })

  it('is believed where it was set although something was committed later', () => {
    const { state, start } = machine(noon)
    state.setAt = 1
    const keeper = start(noon + 365 * day)
    expect(keeper.trust.status().state).toBe('synced')
    expect(keeper.now()).toBe(noon)
  })

  it('removes nothing for its age after a long rest of which nothing is known', () => {
    const { start, pass } = machine(noon)
    const keeper = start(noon - 30 * day)
    expect(keeper.trust.mayRemove()).toBe(false)
    pass(limits.clockRemovalMs.value, keeper)
    expect(keeper.trust.mayRemove()).toBe(true)
  })

  it('has nothing to wait for where nothing was committed', () => {
    expect(machine(noon).start(0).trust.mayRemove()).toBe(true)
  })

  it('is always believed where the settings say so, and only when it was set where they say that', () => {
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
