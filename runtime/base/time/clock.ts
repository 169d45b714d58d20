/**
 * Time, as a port. Wall-clock time is for stamps that people and peers read; monotonic time is for every
 * interval and deadline, because the wall clock of a board without a battery jumps. A clock may know that it cannot be
 * believed: what is stamped then is put right later, by the boot and the monotonic time it was made at.
 */
import { clockShiftMs } from '#base/register/failpoints.ts'

export interface Clock {
  /** Wall-clock time in integer milliseconds since 1970 UTC. */
  now(): number
  /** Milliseconds on a clock that never goes back and knows no date. */
  monotonic(): number
  /** How far `now` can be believed; left out, always. */
  readonly trust?: ClockTrust
}

/**
 * - synced: something that knows the time has set the clock of the system
 * - coarse: nobody is known to have set it, and nothing speaks against it
 * - unsynced: it is wrong, or nothing speaks for it; `now` runs on by monotonic time
 */
export type ClockState = 'synced' | 'coarse' | 'unsynced'

/** What tells when something happened while the clock was unsynced: its `now` is `offset` and the monotonic time since that boot. */
export interface BootTime {
  readonly boot: string
  /** ms */
  readonly offset: number
}

/** A time in which the clock is unsynced. When it is over, `shift` is what has to be added to its stamps, ms. */
export interface Stretch extends BootTime {
  readonly shift: number | undefined
}

export interface ClockStatus {
  readonly state: ClockState
  /** Why it is not synced. */
  readonly reason: string
  readonly jumps: number
  /** What the clock of the system says beyond ours, ms. */
  readonly ahead: number
}

/** What a clock tells of itself. */
export type ClockEvent =
  | { readonly kind: 'jumped'; readonly by: number }
  | { readonly kind: ClockState; readonly reason: string; readonly by: number }

export interface ClockTrust {
  status(): ClockStatus
  /** The stretch that lasts; undefined while the clock is believed. */
  stretch(): Stretch | undefined
  /** What to add to stamps made then: 0 where that boot ended before its clock was set; undefined while not known. */
  correction(then: BootTime): number | undefined
  /** Says that it was later than this already, ms. */
  notBefore(at: number): void
  /** False while nothing may be removed for its age, because the clock may be wrong. */
  mayRemove(): boolean
  /** How long the clock has been believed, ms; infinite where it always was, 0 while it is not. */
  believedMs(): number
  /** Tells the listener what happens from now on. */
  watch(listener: (event: ClockEvent) => void): void
}

export const systemClock: Clock = {
  now: () => Date.now() + clockShiftMs(),
  monotonic: () => performance.now(),
}
