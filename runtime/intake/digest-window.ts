/**
 * Recognises repeats of frames without a time of their own, which nothing else tells apart: the same payload on the
 * same topic within a minute of its first arrival counts once. The window does not slide, so a sensor that repeats
 * one value is still observed once a minute. Bounded by number; in memory only, so a restart forgets.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits.ts'
import type { Frame } from '#contract'

export interface DigestWindow {
  /**
   * Whether the frame is the first of its kind in the window; it is then remembered.
   * @param now milliseconds on a clock that never goes back
   */
  admit(frame: Frame, now: number): boolean
  /** Forgets a frame whose commit failed, so that its redelivery is admitted. */
  forget(frame: Frame): void
  readonly size: number
}

export interface DigestWindowSettings {
  readonly windowMs?: number | undefined
  readonly digestsMax?: number | undefined
}

export function createDigestWindow(settings: DigestWindowSettings = {}): DigestWindow {
  const { windowMs = limits.untimedWindowMs.value, digestsMax = limits.untimedDigestsMax.value } = settings
  /** First arrival by digest; insertion order is order of time. */
  const arrivals = new Map<string, number>()

  /** A few at a time: whatever was admitted together has not to be forgotten together. */
  const forgetOld = (now: number): void => {
    let steps = 4
    for (const [digest, arrival] of arrivals) {
      const isDue = now - arrival >= windowMs || arrivals.size > digestsMax
      if (!isDue || --steps < 0) return
      arrivals.delete(digest)
    }
  }

  return Object.freeze({
    get size() {
      return arrivals.size
    },
    forget: (frame: Frame) => void arrivals.delete(digestOf(frame)),
    admit(frame: Frame, now: number) {
      const digest = digestOf(frame)
      const arrival = arrivals.get(digest)
      if (arrival !== undefined && now - arrival < windowMs) return false
      if (arrival !== undefined) arrivals.delete(digest)
      arrivals.set(digest, now)
      forgetOld(now)
      return true
    },
  })
}

/** The topic is part of it: two devices may send the same words. */
function digestOf({ topic, payload }: Frame): string {
  return hash('sha1', Buffer.concat([Buffer.from(`${topic}\0`), payload]), 'base64')
}
