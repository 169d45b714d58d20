/**
 * The clock of the gateway over that of the system, which a board without battery has wrong until somebody sets it.
 * It never begins before what was committed last. While the system's clock cannot be believed it runs by monotonic time
 * alone; a jump of the system's clock is followed when what sets clocks speaks for it, or when it lasts.
 */

import { randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import type { BootTime, Clock, ClockEvent, ClockState, ClockTrust } from './clock.ts'

export interface TimekeeperSettings {
  /**
   * - plausible: the system's clock is believed where nothing speaks against it
   * - synced: only where something has set it
   * - always: whatever it says
   */
  readonly believe: 'plausible' | 'synced' | 'always'
  /** Is there once the clock was set; touched whenever it is set again. */
  readonly syncedFile: string
}

/** What is known about the clock of the system beside what it says. */
export interface Evidence {
  /** When something last said that it has set the clock; undefined where it did not yet. */
  readonly setAt: number | undefined
  /** Whether something is there that will set the clock, and no battery that kept it. */
  readonly isAwaited: boolean
}

export interface TimekeeperPorts {
  readonly system: Clock
  readonly boot: string
  /** Monotonic ms since the boot, less that of `system`. */
  readonly bootedMs: number
  readonly evidence: () => Evidence
  /** No right clock says less, ms. */
  readonly floor: number
}

export interface Timekeeper extends Clock {
  readonly trust: ClockTrust
  /** Looks at the clock of the system, as it does every second once started. */
  look(): void
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
  /** Stretches of this process; only the last may last. */
  const stretches: { boot: string; offset: number; shift: number | undefined }[] = []
  let floor = ports.floor
  /** Our time less the monotonic time since the boot. */
  let offset = 0
  let [state, reason]: [ClockState, string] = ['unsynced', '']
  let stretch: (typeof stretches)[number] | undefined
  /** In a stretch that began with a jump: since when the system's clock is where it is, where that is, and where it was. */
  let doubt: { since: number; offset: number; readonly was: number } | undefined
  let setAt: number | undefined
  let [jumps, toldLast, removalFrom, believedAt] = [0, 0, 0, Number.NEGATIVE_INFINITY]
  let timer: NodeJS.Timeout | undefined

  const bootMs = (): number => ports.bootedMs + system.monotonic()
  const ours = (): number => Math.floor(offset + bootMs())
  const isNear = (a: number, b: number): boolean => Math.abs(a - b) <= limits.clockJumpMs.value
  const tell = (event: ClockEvent): void => {
    for (const listener of listeners) listener(event)
  }
  lookFirst()

  function judge(now: number, known: Evidence): { state: ClockState; reason: string } {
    if (settings.believe === 'always' || known.setAt !== undefined) return { state: 'synced', reason: '' }
    const no = (why: string) => ({ state: 'unsynced', reason: why }) as const
    if (now < floor - limits.clockFloorSlackMs.value)
      return no(`the clock of the system says ${textOf(now)}, when it was later already`)
    if (now > floor + limits.clockAheadMsMax.value)
      return no(`the clock of the system says ${textOf(now)}, which is too far ahead`)
    if (settings.believe === 'synced' || known.isAwaited)
      return no('nothing has set the clock of the system yet')
    return { state: 'coarse', reason: 'nothing tells whether the clock of the system was set' }
  }

  function look(): void {
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

  /** Whether a jump was taken back, was explained, or has lasted. */
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
    tell({ kind: 'jumped', by })
  }

  function doubtJump(now: number, by: number): void {
    doubt = { since: system.monotonic(), offset: now - bootMs(), was: offset }
    begin(`the clock of the system jumped by ${Math.round(by / 1000)} s, and nothing tells why`)
  }

  /** From here on our clock runs by monotonic time alone, later than all that was stamped also where it had been set back. */
  function begin(why: string): void {
    offset = Math.ceil(Math.max(offset, Math.max(toldLast + 1, floor) - bootMs()))
    stretch = { boot, offset, shift: undefined }
    stretches.push(stretch)
    if (state === 'unsynced' && reason === why) return
    state = 'unsynced'
    reason = why
    tell({ kind: state, reason, by: 0 })
  }

  /** Ends a stretch: from here on our clock is that of the system again. */
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

  /** Goes with the clock of the system, which is believed; slow corrections of it are ours. */
  function follow(now: number, verdict: { state: ClockState; reason: string }, by = 0): void {
    offset = now - bootMs()
    // What was right goes on, also where what sets it is being restarted.
    const next = verdict.state === 'synced' ? 'synced' : 'coarse'
    reason = verdict.reason
    if (next === state) return
    state = next
    if (state === 'synced') removalFrom = 0
    tell({ kind: state, reason, by })
  }

  function waitWithRemoval(): void {
    removalFrom = system.monotonic() + limits.clockRemovalMs.value
  }

  function notBefore(at: number): void {
    const now = system.now()
    // Later than all that was stamped, so that what waits to be put right is known by its time.
    floor = Math.max(floor, at + 1)
    const verdict = judge(now, evidence())
    if (stretch !== undefined) {
      // Nothing was stamped with less, so it may begin anew.
      if (doubt !== undefined || ours() >= floor) return
      offset = floor - bootMs()
      begin(reason)
    } else if (verdict.state === 'unsynced') {
      offset = floor - bootMs()
      begin(verdict.reason)
    } else if (verdict.state === 'coarse' && at > 0 && now - at > limits.clockGapMs.value) waitWithRemoval()
  }

  function lookFirst(): void {
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
      const told = stretch === undefined && isNear(now, ours()) ? now : ours()
      toldLast = Math.max(toldLast, told)
      return told
    },
    monotonic: system.monotonic,
    look,
    start() {
      timer ??= setInterval(look, limits.clockCheckMs.value).unref()
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

/** Where the kernel says which boot this is; elsewhere each process is a boot of its own. */
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

/** Any number of ms as a person reads it. */
export const textOf = (ms: number): string =>
  Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`
