/**
 * Gathers streams that changed during one turn of the event loop, so that a batch with many observations of
 * a stream rates it once.
 */
import type { Stream } from './stream.ts'

export interface StreamGathering {
  add(stream: Stream): void
  delete(stream: Stream): void
}

/** @param changed called once per gathered stream, after the current turn. */
export function createStreamGathering(changed: (stream: Stream) => void): StreamGathering {
  const gathered = new Set<Stream>()
  const end = (): void => {
    for (const stream of gathered) changed(stream)
    gathered.clear()
  }
  return Object.freeze({
    add(stream) {
      if (gathered.size === 0) queueMicrotask(end)
      gathered.add(stream)
    },
    delete: (stream) => void gathered.delete(stream),
  } satisfies StreamGathering)
}
