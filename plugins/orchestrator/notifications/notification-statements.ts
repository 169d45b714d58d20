/**
 * Tables and statements of received notifications, and of how far each lane has sent those of a
 * subscription. A lane without a row begins with the oldest notification.
 */
import type { PluginDatabase } from '#contract'

/** Part of the first migration step. AUTOINCREMENT: no number is used twice, so lanes can compare them. */
export const notificationTables = `CREATE TABLE notifications (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  subscription TEXT NOT NULL,
  body BLOB NOT NULL
);
CREATE INDEX notifications_by_subscription ON notifications (subscription, n);
CREATE TABLE lanes (
  subscription TEXT NOT NULL,
  lane TEXT NOT NULL,
  through INTEGER NOT NULL,
  PRIMARY KEY (subscription, lane)
) WITHOUT ROWID;`

export interface StoredNotification {
  readonly n: number
  /** As received. */
  readonly body: Buffer
}

export interface OldNotification {
  readonly n: number
  readonly subscription: string
  readonly bytes: number
}

export interface NotificationTotal {
  readonly count: number
  readonly bytes: number
}

export type NotificationStatements = ReturnType<typeof prepareNotifications>

export function prepareNotifications(database: PluginDatabase) {
  const insert = database.prepare('INSERT INTO notifications (subscription, body) VALUES (?, ?)')
  const next = database.prepare(
    // Text takes less than half the time of a blob, for which memory outside the heap is allocated.
    'SELECT n, CAST(body AS TEXT) AS body FROM notifications WHERE subscription = ? AND n > ? ORDER BY n LIMIT ?',
  )
  const last = database
    .prepare('SELECT n FROM notifications WHERE subscription = ? ORDER BY n DESC LIMIT 1')
    .pluck()
  const contains = database.prepare('SELECT 1 FROM notifications WHERE n = ? AND subscription = ?').pluck()
  const beyond = database
    .prepare('SELECT n FROM notifications WHERE subscription = ? ORDER BY n DESC LIMIT 1 OFFSET ?')
    .pluck()
  const countOf = database
    .prepare('SELECT count(*) FROM notifications WHERE subscription = ? AND n > ? AND n <= ?')
    .pluck()
  const sizes = database.prepare(
    'SELECT count(*) AS count, sum(length(body)) AS bytes FROM notifications WHERE subscription = ? AND n <= ?',
  )
  const trim = database.prepare('DELETE FROM notifications WHERE subscription = ? AND n <= ?')
  const oldest = database.prepare(
    'SELECT n, subscription, length(body) AS bytes FROM notifications ORDER BY n LIMIT ?',
  )
  const total = database.prepare('SELECT count(*) AS count, sum(length(body)) AS bytes FROM notifications')
  const cursors = database.prepare('SELECT lane, through FROM lanes WHERE subscription = ?')
  const setCursor = database.prepare('INSERT OR REPLACE INTO lanes VALUES (?, ?, ?)')
  const removeCursor = database.prepare('DELETE FROM lanes WHERE subscription = ? AND lane = ?')
  return Object.freeze({
    insert: (subscription: string, body: Buffer): number =>
      Number(insert.run(subscription, body).lastInsertRowid),
    next: (subscription: string, after: number, count: number) =>
      (next.all(subscription, after, count) as { n: number; body: string }[]).map(
        ({ n, body }): StoredNotification => ({ n, body: Buffer.from(body) }),
      ),
    /** The newest number of a subscription; 0 if it has none. */
    last: (subscription: string): number => (last.get(subscription) as number | undefined) ?? 0,
    contains: (subscription: string, n: number): boolean => contains.get(n, subscription) !== undefined,
    /** The newest number beyond the newest `count` of a subscription; undefined if there are not as many. */
    beyond: (subscription: string, count: number) => beyond.get(subscription, count) as number | undefined,
    countOf: (subscription: string, after: number, through: number) =>
      countOf.get(subscription, after, through) as number,
    /** Deletes notifications up to a number. Returns how many they were, and their bytes. */
    trim(subscription: string, through: number): NotificationTotal {
      const deleted = totalOf(sizes.get(subscription, through))
      if (deleted.count > 0) trim.run(subscription, through)
      return deleted
    },
    oldest: (count: number) => oldest.all(count) as OldNotification[],
    total: (): NotificationTotal => totalOf(total.get()),
    cursors: (subscription: string) =>
      cursors.all(subscription) as { readonly lane: string; readonly through: number }[],
    setCursor: (subscription: string, lane: string, through: number) =>
      setCursor.run(subscription, lane, through),
    removeCursor: (subscription: string, lane: string) => removeCursor.run(subscription, lane),
  })
}

function totalOf(row: unknown): NotificationTotal {
  const { count, bytes } = row as { count: number; bytes: number | null }
  return { count, bytes: bytes ?? 0 }
}
