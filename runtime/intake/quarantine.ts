/**
 * The quarantine: frames that a bridge claimed and could not decode, and frames of devices that nobody accepted yet,
 * with the reason, replayable. Bounded by number and bytes; the oldest leave first.
 */
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Counter } from '#base/metrics.ts'
import type { Stage } from '#broker/stage.ts'
import type { Frame } from '#contract'
import type { Records } from '#store/records.ts'

export interface Quarantine {
  /** Stages one frame. `bridge` is absent where none decoded it. */
  put(stage: Stage, frame: Frame, bridge: string | undefined, reason: string): void
}

export interface QuarantinePorts {
  readonly records: Records
  readonly quarantined: Counter
  readonly log: Log
}

export function createQuarantine({ records, quarantined, log }: QuarantinePorts): Quarantine {
  let last = records.quarantineLast()
  const kept = records.quarantineSizes()
  let bytes = kept.reduce((sum, { size }) => sum + size, 0)

  return Object.freeze({
    put(stage, frame, bridge, reason) {
      const q = ++last
      const size = frame.payload.length
      quarantined.value++
      log.debug('intake.quarantined', { topic: frame.topic, bridge, reason })
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
  } satisfies Quarantine)
}
