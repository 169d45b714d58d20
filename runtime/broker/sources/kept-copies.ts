/**
 * Stores the last responses of context sources on disk, so that a restart does not lose them while a source
 * is unreachable. Copies are written periodically and when the gateway stops, the newest of each. The
 * federation room decides how they are used. They are deleted with the registration that allows them.
 */
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { ContextSources, SourceCopyRow } from '#store/tables/source-rows.ts'
import type { SourceCopies } from './source-requests.ts'

export interface SourceCopiesPorts {
  readonly door: Door
  readonly rows: ContextSources
  readonly clock: Clock
  /** Whether a registration still allows copies. */
  readonly isAllowed: (source: string) => boolean
}

/** Minimum interval of writes, ms: a long one spares flash storage. */
const copiesEveryMs = 300_000

export function createKeptCopies({ door, rows, clock, isAllowed }: SourceCopiesPorts) {
  /** By key; undefined means delete. */
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
    } satisfies SourceCopies),
    settle,
    /** Stages the deletion of a source's copies. */
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
