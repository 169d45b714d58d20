/**
 * What context sources told last, on disk, so that a restart does not lose it while they cannot be reached. Copies
 * are written from time to time and when the gateway stops, the newest of each; what they are good for is decided by
 * whoever asks the sources. They go with the registration that allows them.
 */
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { ContextSources, SourceCopyRow } from '#store/tables/source-rows.ts'
import type { KeptCopies } from './source-requests.ts'

export interface KeptCopyPorts {
  readonly door: Door
  readonly rows: ContextSources
  readonly clock: Clock
  /** Whether a registration still allows copies. */
  readonly isAllowed: (source: string) => boolean
}

/** Once in so many ms: the cells of a flash card last longer than an answer does. */
const copiesEveryMs = 300_000

export function createKeptCopies({ door, rows, clock, isAllowed }: KeptCopyPorts) {
  /** By key; undefined is to be removed. */
  const pending = new Map<string, SourceCopyRow | undefined>()
  let writtenAt = clock.monotonic()

  function settle(): void {
    if (pending.size === 0) return
    writtenAt = clock.monotonic()
    const changes = [...pending]
    pending.clear()
    door.submit({
      urgent: false,
      bytes: changes.reduce((sum, [key, row]) => sum + key.length + (row?.answer.length ?? 0), 0),
      decide(stage) {
        for (const [key, row] of changes) {
          if (row === undefined) stage.write('source_copy.delete', key)
          else if (isAllowed(row.source)) stage.write('source_copy.put', key, row.source, row.at, row.answer)
        }
      },
      answer: () => undefined,
    })
  }

  return Object.freeze({
    broker: Object.freeze({
      stored: () => rows.copies(),
      put: (row) => void pending.set(row.key, row),
      drop: (key) => void pending.set(key, undefined),
    } satisfies KeptCopies),
    settle,
    /** Stages that what a source told is forgotten. */
    forget(stage: Stage, source: string): void {
      stage.write('source_copy.forget', source)
      stage.published(() => {
        for (const [key, row] of pending) if (row?.source === source) pending.delete(key)
      })
    },
    sweep(): void {
      if (clock.monotonic() - writtenAt >= copiesEveryMs) settle()
    },
  })
}
