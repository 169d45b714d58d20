/**
 * Messages of sources whose observations are counted in memory but may not be in the saved records. A row is
 * written before its message is acknowledged; a restart counts the rows that the records do not include. The
 * newest rows of each source also identify messages that it delivers again.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json, PluginDatabase } from '#contract'
import type { CountedMessages } from '#plugins/quality/streams/stream-saving.ts'

/** Migration step; a released step never changes. */
export const messageTables = `CREATE TABLE messages (
    n INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    digest TEXT NOT NULL,
    received INTEGER NOT NULL,
    content TEXT NOT NULL
  );
  CREATE INDEX messages_by_source ON messages (source, n);
  CREATE TABLE counted (one INTEGER PRIMARY KEY CHECK (one = 1), n INTEGER NOT NULL);`

/** An observation of a stream: id, time in ms, value. */
export type SourceObservation = readonly [stream: string, time: number, value: Json]

export interface JournalMessage {
  readonly source: string
  /** Identifies the message among those of its source. */
  readonly digest: string
  /** When it arrived, ms. */
  readonly receivedAt: number
  readonly observations: readonly SourceObservation[]
}

export interface MessageJournal extends CountedMessages {
  /** Messages that not all saved records include, oldest first. The caller counts each before it yields. */
  uncounted(): Iterable<JournalMessage & { readonly n: number }>
  /** Digests of the newest messages of a source. */
  digestsOf(source: string): readonly string[]
  /** Stores messages that the caller counts in the same turn. @throws the error of a failing disk. */
  add(messages: readonly JournalMessage[]): void
  /** Messages stored since then. */
  readonly length: () => number
}

export function createMessageJournal(database: PluginDatabase): MessageJournal {
  const read = database.prepare('SELECT n FROM counted').pluck()
  let counted = (read.get() as number | undefined) ?? 0
  const newest = database.prepare('SELECT max(n) FROM messages').pluck()
  let last = Math.max(counted, (newest.get() as number | null) ?? 0)
  /** Messages up to this number are included in the records in memory. */
  let included = counted
  const insert = database.prepare('INSERT INTO messages VALUES (?, ?, ?, ?, ?)')
  const after = database.prepare(
    'SELECT n, source, digest, received, content FROM messages WHERE n > ? ORDER BY n LIMIT ?',
  )
  const digests = database
    .prepare('SELECT digest FROM messages WHERE source = ? ORDER BY n DESC LIMIT ?')
    .pluck()
  const put = database.prepare('INSERT OR REPLACE INTO counted VALUES (1, ?)')
  const sources = database.prepare('SELECT DISTINCT source FROM messages').pluck()
  const prune = database.prepare(
    `DELETE FROM messages WHERE source = ? AND n <= ? AND n <=
       (SELECT n FROM messages WHERE source = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`,
  )
  const window = limits.qualitySourceDigests.value
  const add = database.transaction((messages: readonly JournalMessage[]) => {
    let n = last
    for (const { source, digest, receivedAt, observations } of messages)
      insert.run(++n, source, digest, receivedAt, JSON.stringify(observations))
    return n
  })
  return Object.freeze({
    *uncounted() {
      for (;;) {
        const rows = after.all(included, limits.clientReadPage.value) as readonly MessageRow[]
        for (const { n, source, digest, received, content } of rows) {
          included = n
          const observations = JSON.parse(content) as SourceObservation[]
          yield { n, source, digest, receivedAt: received, observations }
        }
        if (rows.length === 0) return
      }
    },
    digestsOf: (source) => (digests.all(source, window) as string[]).toReversed(),
    add(messages) {
      last = add(messages)
      included = last
    },
    included: () => included,
    saved(until) {
      put.run(until)
      for (const source of sources.all()) prune.run(source, until, source, window)
      return () => {
        counted = until
      }
    },
    length: () => last - counted,
  } satisfies MessageJournal)
}

interface MessageRow {
  readonly n: number
  readonly source: string
  readonly digest: string
  readonly received: number
  readonly content: string
}
