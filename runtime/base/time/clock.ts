/**
 * Time, as a port. Wall-clock time is for stamps that people and peers read. Monotonic time is for every
 * interval and deadline, because the wall clock of a board without a battery jumps. A clock may know that it
 * is not trustworthy; stamps made then are corrected later, by their boot and monotonic time.
 */
import { clockShiftMs } from '#base/register/failpoints.ts'

export interface Clock {
  /** Wall-clock time in integer milliseconds since 1970 UTC. */
  now(): number
  /** Milliseconds on a clock that never runs backwards and has no date. */
  monotonic(): number
  /** Whether `now` can be trusted; if absent, always. */
  readonly trust?: ClockTrust
}

/**
 * - synced: a time source has set the system clock
 * - coarse: no time source is known to have set it, and its time is plausible
 * - unsynced: its time is wrong or unconfirmed; `now` advances by monotonic time
 */
export type ClockState = 'synced' | 'coarse' | 'unsynced'

/**
 * Identifies when a stamp was made while the clock was unsynced: `now` was `offset` plus the monotonic time
 * since that boot.
 */
export interface BootTime {
  readonly boot: string
  /** ms */
  readonly offset: number
}

/** A period in which the clock is unsynced. After its end, `shift` is the correction of its stamps, ms. */
export interface Stretch extends BootTime {
  readonly shift: number | undefined
}

export interface ClockStatus {
  readonly state: ClockState
  /** Reason why it is not synced. */
  readonly reason: string
  readonly jumps: number
  /** How far the system clock is ahead of this clock, ms. */
  readonly ahead: number
}

/** A change of the clock that listeners are notified of. */
export type ClockEvent =
  | { readonly kind: 'jumped'; readonly by: number }
  | { readonly kind: ClockState; readonly reason: string; readonly by: number }

export interface ClockTrust {
  status(): ClockStatus
  /** The current unsynced period; undefined while the clock is trusted. */
  stretch(): Stretch | undefined
  /**
   * The correction of stamps made then: 0 if that boot ended before its clock was set; undefined while
   * unknown.
   */
  correction(then: BootTime): number | undefined
  /** Raises the lower bound of the current time, ms. */
  notBefore(at: number): void
  /** False while the clock may be wrong, so that no data may be removed because of its age. */
  mayRemove(): boolean
  /** How long the clock has been trusted, ms; infinite if it always was, 0 while it is not. */
  believedMs(): number
  /** Notifies the listener of all later events. */
  watch(listener: (event: ClockEvent) => void): void
}

export const systemClock: Clock = {
  now: () => Date.now() + clockShiftMs(),
  monotonic: () => performance.now(),
}
