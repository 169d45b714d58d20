/**
 * The clock of the gateway, based on the system clock, which is wrong on a board without a battery until it
 * is set.
 *
 * 1. It never starts before the time of the last commit.
 * 2. While the system clock is not trusted, it advances by monotonic time alone.
 * 3. It follows a jump of the system clock if a time source confirms the jump, or if the jump lasts.
 */

import { randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import type { BootTime, Clock, ClockEvent, ClockState, ClockTrust } from './clock.ts'

export interface TimekeeperSettings {
  /**
   * - plausible: trust the system clock if its time is plausible
   * - synced: trust it only after a time source has set it
   * - always: trust it unconditionally
   */
  readonly believe: 'plausible' | 'synced' | 'always'
  /** This file exists once the clock was set, and is touched whenever it is set again. */
  readonly syncedFile: string
}

/** Facts about the system clock other than its time. */
export interface Evidence {
  /** When a time source last reported that it set the clock; undefined if it has not yet. */
  readonly setAt: number | undefined
  /** Whether a time source will set the clock and no battery has kept it. */
  readonly isAwaited: boolean
}

export interface TimekeeperPorts {
  readonly system: Clock
  readonly boot: string
  /** Monotonic ms since the boot, minus that of `system`. */
  readonly bootedMs: number
  readonly evidence: () => Evidence
  /** Lower bound of the correct time, ms. */
  readonly floor: number
}

export interface Timekeeper extends Clock {
  readonly trust: ClockTrust
  /** Checks the system clock, as it does every second once started. */
  check(): void
  start(): void
  stop(): void
}

/** The gateway's clock on this machine. */
export function openTimekeeper(system: Clock, floor: number, settings: TimekeeperSettings): Timekeeper {
  const bootedMs = Number(process.hrtime.bigint() / 1000n) / 1000 - performance.now()
  const evidence = (): Evidence => evidenceOf(settings.syncedFile)
  return createTimekeeper({ system, boot: bootId(), bootedMs, evidence, floor }, settings)
}

export function createTimekeeper(
  ports: TimekeeperPorts,
  settings: Pick<TimekeeperSettings, 'believe'>,
): Timekeeper {
  const { system, boot, evidence } = ports
  const listeners: ((event: ClockEvent) => void)[] = []
  /** Unsynced periods of this process; only the last one can be current. */
  const stretches: { boot: string; offset: number; shift: number | undefined }[] = []
  let floor = ports.floor
  /** The time of this clock minus the monotonic time since the boot. */
  let offset = 0
  let state: ClockState = 'unsynced'
  let reason = ''
  let stretch: (typeof stretches)[number] | undefined
  /** After a jump: since when the system clock has its current offset, that offset, and the earlier one. */
  let doubt: { since: number; offset: number; readonly was: number } | undefined
  let setAt: number | undefined
  let jumps = 0
  let lastStamp = 0
  let removalFrom = 0
  let believedAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined

  const bootMs = (): number => ports.bootedMs + system.monotonic()
  const ours = (): number => Math.floor(offset + bootMs())
  const isNear = (a: number, b: number): boolean => Math.abs(a - b) <= limits.clockJumpMs.value
  const notify = (event: ClockEvent): void => {
    for (const listener of listeners) listener(event)
  }
  checkFirst()

  function judge(now: number, known: Evidence): { state: ClockState; reason: string } {
    if (settings.believe === 'always' || known.setAt !== undefined) return { state: 'synced', reason: '' }
    const no = (why: string) => ({ state: 'unsynced', reason: why }) as const
    if (now < floor - limits.clockFloorSlackMs.value)
      return no(`the system clock shows ${textOf(now)}, which is before the last known time`)
    if (now > floor + limits.clockAheadMsMax.value)
      return no(`the system clock shows ${textOf(now)}, which is too far ahead`)
    if (settings.believe === 'synced' || known.isAwaited)
      return no('no time source has set the system clock yet')
    return { state: 'coarse', reason: 'it is unknown whether the system clock was set' }
  }

  function check(): void {
    const now = system.now()
    const known = evidence()
    const verdict = judge(now, known)
    if (stretch !== undefined) {
      const isOver =
        doubt === undefined ? verdict.state !== 'unsynced' : isSettled(doubt, now, known, verdict.state)
      if (isOver) believe(now, verdict)
    } else if (settings.believe !== 'always' && !isNear(now, ours())) {
      const by = now - ours()
      jumped(by)
      if (isSetAnew(known)) follow(now, verdict)
      else doubtJump(now, by)
    } else follow(now, verdict)
    if (doubt === undefined) setAt = known.setAt
  }

  const isSetAnew = (known: Evidence): boolean => known.setAt !== undefined && known.setAt !== setAt

  /** Whether a jump was reversed, confirmed by a time source, or has lasted long enough. */
  function isSettled(
    since: NonNullable<typeof doubt>,
    now: number,
    known: Evidence,
    verdict: ClockState,
  ): boolean {
    if (isNear(now, since.was + bootMs()) || isSetAnew(known)) return true
    if (!isNear(now, since.offset + bootMs())) {
      since.since = system.monotonic()
      since.offset = now - bootMs()
    }
    return verdict !== 'unsynced' && system.monotonic() - since.since >= limits.clockConfirmMs.value
  }

  function jumped(by: number): void {
    jumps++
    notify({ kind: 'jumped', by })
  }

  function doubtJump(now: number, by: number): void {
    doubt = { since: system.monotonic(), offset: now - bootMs(), was: offset }
    begin(`the system clock jumped by ${Math.round(by / 1000)} s for an unknown reason`)
  }

  /**
   * Starts an unsynced period: this clock advances by monotonic time, and stays later than all its stamps.
   */
  function begin(why: string): void {
    offset = Math.ceil(Math.max(offset, Math.max(lastStamp + 1, floor) - bootMs()))
    stretch = { boot, offset, shift: undefined }
    stretches.push(stretch)
    if (state === 'unsynced' && reason === why) return
    state = 'unsynced'
    reason = why
    notify({ kind: state, reason, by: 0 })
  }

  /** Ends an unsynced period: this clock is the system clock again. */
  function believe(now: number, verdict: { state: ClockState; reason: string }): void {
    const by = now - ours()
    const wasDoubted = doubt !== undefined
    stretch = undefined
    doubt = undefined
    believedAt = system.monotonic()
    state = 'unsynced'
    offset = now - bootMs()
    for (const one of stretches) one.shift ??= Math.round(offset - one.offset)
    if (wasDoubted && by > limits.clockGapMs.value) waitWithRemoval()
    follow(now, verdict.state === 'unsynced' ? { state: 'coarse', reason: verdict.reason } : verdict, by)
  }

  /** Follows the trusted system clock, including its slow corrections. */
  function follow(now: number, verdict: { state: ClockState; reason: string }, by = 0): void {
    offset = now - bootMs()
    // A trusted clock stays trusted while its time source restarts.
    const next = verdict.state === 'synced' ? 'synced' : 'coarse'
    reason = verdict.reason
    if (next === state) return
    state = next
    if (state === 'synced') removalFrom = 0
    notify({ kind: state, reason, by })
  }

  function waitWithRemoval(): void {
    removalFrom = system.monotonic() + limits.clockRemovalMs.value
  }

  function notBefore(at: number): void {
    const now = system.now()
    // Later than every earlier stamp, so that stamps to be corrected are identified by their time.
    floor = Math.max(floor, at + 1)
    const verdict = judge(now, evidence())
    if (stretch !== undefined) {
      // No stamp of this period is older, so the period may start again.
      if (doubt !== undefined || ours() >= floor) return
      offset = floor - bootMs()
      begin(reason)
    } else if (verdict.state === 'unsynced') {
      offset = floor - bootMs()
      begin(verdict.reason)
    } else if (verdict.state === 'coarse' && at > 0 && now - at > limits.clockGapMs.value) waitWithRemoval()
  }

  function checkFirst(): void {
    const now = system.now()
    const known = evidence()
    const verdict = judge(now, known)
    setAt = known.setAt
    offset = now - bootMs()
    if (verdict.state !== 'unsynced') follow(now, verdict)
    else {
      const isPlausible = now >= floor && now <= floor + limits.clockAheadMsMax.value
      if (!isPlausible) offset = floor - bootMs()
      begin(verdict.reason)
    }
  }

  return Object.freeze({
    now() {
      const now = system.now()
      if (settings.believe === 'always') return now
      const stamp = stretch === undefined && isNear(now, ours()) ? now : ours()
      lastStamp = Math.max(lastStamp, stamp)
      return stamp
    },
    monotonic: system.monotonic,
    check,
    start() {
      timer ??= setInterval(check, limits.clockCheckMs.value).unref()
    },
    stop: () => clearInterval(timer),
    trust: Object.freeze({
      status: () => ({ state, reason, jumps, ahead: Math.round(system.now() - ours()) }),
      stretch: () => stretch,
      correction(then: BootTime) {
        if (stretch !== undefined) return undefined
        return then.boot === boot ? Math.round(offset - then.offset) : 0
      },
      notBefore,
      believedMs: () => (stretch === undefined ? system.monotonic() - believedAt : 0),
      mayRemove: () => stretch === undefined && system.monotonic() >= removalFrom,
      watch: (listener) => listeners.push(listener),
    } satisfies ClockTrust),
  } satisfies Timekeeper)
}

/** The boot id of the kernel; without one, each process counts as a boot of its own. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return randomUUID()
  }
}

function evidenceOf(file: string): Evidence {
  const setAt = changedAt(file)
  return { setAt, isAwaited: setAt === undefined && changedAt(dirname(file)) !== undefined && !hasBattery() }
}

function changedAt(file: string): number | undefined {
  try {
    return statSync(file).mtimeMs
  } catch {
    return undefined
  }
}

const hasBattery = (): boolean => changedAt('/sys/class/rtc/rtc0') !== undefined

/** Any number of ms in readable form. */
export const textOf = (ms: number): string =>
  Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`
