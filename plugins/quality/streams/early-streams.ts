/**
 * Streams that changed before the downtime of the gateway is known. They are rated when it is, in slices. A
 * quality that is rated before would take the silence of a sensor for that of the gateway.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Stream } from './stream.ts'

export interface EarlyStreams {
  add(stream: Stream): void
  delete(stream: Stream): void
  /** Passes all streams on. */
  pass(): Promise<void>
}

export function createEarlyStreams(changed: (stream: Stream) => void): EarlyStreams {
  const streams = new Set<Stream>()
  return Object.freeze({
    add: (stream) => void streams.add(stream),
    delete: (stream) => void streams.delete(stream),
    async pass() {
      let passed = 0
      for (const stream of streams) {
        streams.delete(stream)
        changed(stream)
        if (++passed % limits.clientReadPage.value === 0) await nextTurn()
      }
    },
  } satisfies EarlyStreams)
}
