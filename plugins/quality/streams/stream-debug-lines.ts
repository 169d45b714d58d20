/**
 * The debug lines in the log when a stream falls silent and when it sends again; at debug level, since a site
 * may have many. Whether a stream is silent is decided by `missingNow` in `measures/quality.ts`.
 */
import type { Log } from '#base/register/log.ts'
import type { Stream } from './stream.ts'

export interface StreamDebugLines {
  /** @param missing values that are missing now. */
  note(stream: Stream, missing: number): void
  delete(stream: Stream): void
}

export function createStreamDebugLines(log: Log): StreamDebugLines {
  const silent = new Set<Stream>()
  return Object.freeze({
    note(stream, missing) {
      if (missing > 0 === silent.has(stream)) return
      if (missing > 0) silent.add(stream)
      else silent.delete(stream)
      log.debug(missing > 0 ? 'quality.silent' : 'quality.resumed', { stream: stream.id })
    },
    delete: (stream) => void silent.delete(stream),
  } satisfies StreamDebugLines)
}
