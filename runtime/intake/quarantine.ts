/**
 * The quarantine: frames that a bridge claimed but could not decode, and frames of devices not yet accepted,
 * with the reason. They can be replayed. Number and bytes are bounded; the oldest frames are dropped first.
 */

import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Frame } from '#contract'
import type { Records } from '#store/tables/records.ts'

export interface Quarantine {
  /** Stages one frame. `bridge` is absent when none decoded it. */
  put(stage: Stage, frame: Frame, bridge: string | undefined, reason: string): void
  /** The numbers of the quarantined frames, oldest first. */
  waiting(): readonly number[]
  /** A quarantined frame; undefined when it was released or dropped. */
  find(q: number): Quarantined | undefined
  /** Stages the release of a frame. */
  release(stage: Stage, q: number): void
}

/** A frame as received, with the reason for its quarantine. */
export interface Quarantined {
  readonly frame: Frame
  readonly bridge: string | undefined
  readonly reason: string
}

export interface QuarantinePorts extends Instruments {
  readonly records: Records
}

const logEveryMs = 1000

export function createQuarantine({ records, metrics, clock, log }: QuarantinePorts): Quarantine {
  const quarantined = metrics.counter('selvedge_frames_quarantined_total')
  let last = records.quarantineLast()
  const kept = records.quarantineSizes()
  let bytes = kept.reduce((sum, { size }) => sum + size, 0)
  metrics.gauge('selvedge_quarantine_frames', () => kept.length)

  let reportedAt = Number.NEGATIVE_INFINITY
  let omitted = 0

  /** Logs at most one line per second, with the number of omitted lines. */
  function report(topic: string, bridge: string | undefined, reason: string): void {
    const now = clock.monotonic()
    if (now - reportedAt < logEveryMs) {
      omitted++
      return
    }
    log.warn('intake.quarantined', { topic, bridge, reason, ...(omitted > 0 ? { omitted } : {}) })
    reportedAt = now
    omitted = 0
  }

  return Object.freeze({
    put(stage, frame, bridge, reason) {
      const q = ++last
      const size = frame.payload.length
      quarantined.value++
      report(frame.topic, bridge, reason)
      stage.write(
        'quarantine.insert',
        q,
        frame.receivedAt,
        frame.topic,
        frame.source ?? null,
        frame.contentType ?? null,
        frame.retained ? 1 : 0,
        frame.transport,
        bridge ?? null,
        reason,
        Buffer.from(frame.payload),
      )
      kept.push({ q, size })
      bytes += size
      let oldest: number | undefined
      while (kept.length > limits.quarantineFramesMax.value || bytes > limits.quarantineBytesMax.value) {
        const dropped = kept.shift()!
        bytes -= dropped.size
        oldest = dropped.q
      }
      if (oldest !== undefined) stage.write('quarantine.trim', oldest)
    },
    waiting: () => kept.map(({ q }) => q),
    find(q) {
      const row = records.quarantined(q)
      if (row === undefined) return undefined
      const frame: Frame = {
        topic: row.topic,
        payload: row.payload,
        contentType: row.content_type ?? undefined,
        receivedAt: row.at,
        retained: row.retained === 1,
        transport: row.transport as Frame['transport'],
        source: row.source ?? undefined,
      }
      return { frame, bridge: row.bridge ?? undefined, reason: row.reason }
    },
    release(stage, q) {
      stage.write('quarantine.delete', q)
      stage.published(() => {
        const at = kept.findIndex((one) => one.q === q)
        if (at >= 0) bytes -= kept.splice(at, 1)[0]!.size
      })
    },
  } satisfies Quarantine)
}
