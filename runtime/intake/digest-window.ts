/**
 * Recognizes duplicates of frames without a time of their own. A repeated payload on a topic counts once
 * within a minute of its first arrival. This requires that no other payload arrived since, or that the sender
 * marked it as re-sent. A door that opens, shuts and opens again is therefore observed three times. The
 * window does not slide, so a sensor that repeats one value is still observed once a minute. The number of
 * digests is bounded; they are only in memory, so a restart drops them.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { Frame } from '#contract'

export interface DigestWindow {
  /**
   * True when the frame is the first of its kind in the window; it is then remembered.
   * @param now milliseconds on a monotonic clock
   */
  admit(frame: Frame, now: number): boolean
  /** Removes a frame whose commit failed, so that its redelivery is admitted. */
  forget(frame: Frame): void
  readonly size: number
}

export interface DigestWindowSettings {
  readonly windowMs?: number | undefined
  readonly digestsMax?: number | undefined
}

export function createDigestWindow(settings: DigestWindowSettings = {}): DigestWindow {
  const { windowMs = limits.untimedWindowMs.value, digestsMax = limits.untimedDigestsMax.value } = settings
  /**
   * First arrivals by digest, in two generations: the older one is dropped whole, which costs nothing per
   * frame.
   */
  let recent = new Map<string, number>()
  let older = new Map<string, number>()
  /** The digest of the last frame of each topic. The newer generation takes precedence. */
  let latest = new Map<string, string>()
  let latestOlder = new Map<string, string>()
  let recentSince = Number.NEGATIVE_INFINITY

  const makeRoom = (now: number): void => {
    if (recent.size < digestsMax / 2 && now - recentSince < windowMs) return
    older = recent
    recent = new Map()
    latestOlder = latest
    latest = new Map()
    recentSince = now
  }

  return Object.freeze({
    get size() {
      return recent.size + older.size
    },
    forget(frame: Frame) {
      const digest = digestOf(frame)
      recent.delete(digest)
      older.delete(digest)
    },
    admit(frame: Frame, now: number) {
      const digest = digestOf(frame)
      const { topic } = frame
      const arrival = recent.get(digest) ?? older.get(digest)
      const isKnown = arrival !== undefined && now - arrival < windowMs
      const isLatest = (latest.get(topic) ?? latestOlder.get(topic)) === digest
      if (isKnown && (isLatest || frame.isResent === true)) return false
      makeRoom(now)
      recent.set(digest, now)
      latest.set(topic, digest)
      return true
    },
  })
}

/** Includes the topic, because two devices may send equal payloads. */
function digestOf({ topic, payload }: Frame): string {
  return hash('sha1', Buffer.concat([Buffer.from(`${topic}\0`), payload]), 'base64')
}
