/**
 * The quarantine: frames that a bridge claimed and could not decode, and frames of devices that nobody accepted yet,
 * with the reason, replayable. Bounded by number and bytes; the oldest leave first.
 */

import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Frame } from '#contract'
import type { Records } from '#store/tables/records.ts'

export interface Quarantine {
  /** Stages one frame. `bridge` is absent where none decoded it. */
  put(stage: Stage, frame: Frame, bridge: string | undefined, reason: string): void
  /** The numbers of the frames that wait, oldest first. */
  waiting(): readonly number[]
  /** One of them; undefined when it has left. */
  find(q: number): Quarantined | undefined
  /** Stages that a frame has left. */
  release(stage: Stage, q: number): void
}

/** A frame as it was received, and why it is in quarantine. */
export interface Quarantined {
  readonly frame: Frame
  readonly bridge: string | undefined
  readonly reason: string
}

export interface QuarantinePorts {
  readonly records: Records
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Log
}

const tellEveryMs = 1000

export function createQuarantine({ records, metrics, clock, log }: QuarantinePorts): Quarantine {
  const quarantined = metrics.counter('selvedge_frames_quarantined_total')
  let last = records.quarantineLast()
  const kept = records.quarantineSizes()
  let bytes = kept.reduce((sum, { size }) => sum + size, 0)
  metrics.gauge('selvedge_quarantine_frames', () => kept.length)

  let toldAt = Number.NEGATIVE_INFINITY
  let untold = 0

  /** A flood of frames does not become a flood of lines. */
  function tell(topic: string, bridge: string | undefined, reason: string): void {
    const now = clock.monotonic()
    if (now - toldAt < tellEveryMs) {
      untold++
      return
    }
    log.warn('intake.quarantined', { topic, bridge, reason, ...(untold > 0 ? { untold } : {}) })
    toldAt = now
    untold = 0
  }

  return Object.freeze({
    put(stage, frame, bridge, reason) {
      const q = ++last
      const size = frame.payload.length
      quarantined.value++
      tell(frame.topic, bridge, reason)
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
        const gone = kept.shift()!
        bytes -= gone.size
        oldest = gone.q
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
