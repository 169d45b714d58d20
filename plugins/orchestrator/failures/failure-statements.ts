/**
 * Tables and statements of watched streams: which streams each subscription selects, what was last known of
 * them, and the failure that its clients were notified of. A stream has at most one open failure for each
 * subscription.
 */
import type { SubscriptionIds } from '#client/subscriptions/own-subscriptions.ts'
import type { PluginDatabase } from '#contract'
import type { OpenFailure, StreamFacts, Switch } from './failure-notices.ts'

/** A migration step. */
export const failureTables = `CREATE TABLE watched_streams (
  subscription TEXT NOT NULL,
  stream TEXT NOT NULL,
  observation TEXT NOT NULL,
  sensor TEXT NOT NULL,
  facts TEXT NOT NULL,
  failure TEXT,
  PRIMARY KEY (subscription, stream)
) WITHOUT ROWID;
CREATE INDEX watched_by_stream ON watched_streams (stream);
CREATE INDEX watched_by_observation ON watched_streams (observation);
CREATE INDEX watched_by_sensor ON watched_streams (sensor);
CREATE TABLE failure_watch (one INTEGER PRIMARY KEY CHECK (one = 1), subscriptions TEXT NOT NULL);`

/** A later migration step: the stream that an open failure switched to. */
export const switchTables = `ALTER TABLE watched_streams ADD COLUMN switched_to TEXT;
CREATE INDEX watched_by_switch ON watched_streams (switched_to);`

export interface WatchedStream {
  readonly subscription: string
  readonly stream: string
  /** The selected observation entity; '' if the stream itself is selected. */
  readonly observation: string
  /** '' if unknown. */
  readonly sensor: string
  readonly facts: StreamFacts
  /** The failure that clients were notified of; undefined while the stream works. */
  readonly failure: OpenFailure | undefined
}

interface WatchedRow extends Omit<WatchedStream, 'facts' | 'failure'> {
  readonly facts: string
  readonly failure: string | null
}

export type FailureStatements = ReturnType<typeof prepareFailures>

export function prepareFailures(database: PluginDatabase) {
  const select = (where: string) =>
    database.prepare(
      `SELECT subscription, stream, observation, sensor, facts, failure FROM watched_streams WHERE ${where}`,
    )
  const ofSubscription = select('subscription = ? ORDER BY stream')
  const ofStream = select('stream = ?')
  const ofSensor = select('sensor = ?')
  const one = select('subscription = ? AND stream = ?')
  const streamOf = database
    .prepare('SELECT stream FROM watched_streams WHERE stream = ? OR observation = ? LIMIT 1')
    .pluck()
  const put = database.prepare(
    `INSERT INTO watched_streams VALUES (?, ?, ?, ?, ?, NULL, NULL)
     ON CONFLICT DO UPDATE SET observation = excluded.observation, sensor = excluded.sensor,
       facts = excluded.facts`,
  )
  const setFailure = database.prepare(
    'UPDATE watched_streams SET failure = ?, switched_to = ? WHERE subscription = ? AND stream = ?',
  )
  const switchedFrom = database
    .prepare('SELECT DISTINCT stream FROM watched_streams WHERE switched_to = ?')
    .pluck()
  const switches = database
    .prepare('SELECT failure FROM watched_streams WHERE subscription = ? AND switched_to IS NOT NULL')
    .pluck()
  const removeOne = database.prepare('DELETE FROM watched_streams WHERE subscription = ? AND stream = ?')
  const remove = database.prepare('DELETE FROM watched_streams WHERE subscription = ?')
  const count = database.prepare('SELECT count(*) FROM watched_streams').pluck()
  const failed = database.prepare('SELECT count(*) FROM watched_streams WHERE failure IS NOT NULL').pluck()
  const allStreams = database.prepare('SELECT DISTINCT stream FROM watched_streams').pluck()
  const ids = database.prepare('SELECT subscriptions FROM failure_watch').pluck()
  const putIds = database.prepare('INSERT OR REPLACE INTO failure_watch VALUES (1, ?)')

  const watched = ({ facts, failure, ...row }: WatchedRow): WatchedStream => ({
    ...row,
    facts: JSON.parse(facts) as StreamFacts,
    failure: failure === null ? undefined : (JSON.parse(failure) as OpenFailure),
  })
  return Object.freeze({
    ofSubscription: (id: string) => (ofSubscription.all(id) as WatchedRow[]).map(watched),
    ofStream: (id: string) => (ofStream.all(id) as WatchedRow[]).map(watched),
    ofSensor: (id: string) => (ofSensor.all(id) as WatchedRow[]).map(watched),
    get(subscription: string, stream: string): WatchedStream | undefined {
      const row = one.get(subscription, stream) as WatchedRow | undefined
      return row && watched(row)
    },
    /** The watched stream that an entity is, or that it is the observation entity of. */
    streamOf: (entity: string) => streamOf.get(entity, entity) as string | undefined,
    streams: () => allStreams.all() as string[],
    /** Adds a stream, or updates what is known of it. An open failure stays. */
    put: ({ subscription, stream, observation, sensor, facts }: Omit<WatchedStream, 'failure'>) =>
      put.run(subscription, stream, observation, sensor, JSON.stringify(facts)),
    setFailure: (
      { subscription, stream }: Pick<WatchedStream, 'subscription' | 'stream'>,
      failure?: OpenFailure,
    ) =>
      setFailure.run(
        failure === undefined ? null : JSON.stringify(failure),
        failure?.switchedTo?.stream ?? null,
        subscription,
        stream,
      ),
    /** Failed streams that were switched to a stream. */
    switchedFrom: (stream: string) => switchedFrom.all(stream) as string[],
    /** Alternatives that a subscription was switched to. */
    switches: (subscription: string): readonly Switch[] =>
      (switches.all(subscription) as string[]).flatMap(
        (failure) => (JSON.parse(failure) as OpenFailure).switchedTo ?? [],
      ),
    removeStream: (subscription: string, stream: string) => removeOne.run(subscription, stream),
    remove: (subscription: string) => remove.run(subscription),
    count: () => count.get() as number,
    failed: () => failed.get() as number,
    /** Ids of the subscriptions by which streams are watched. */
    watchIds: () => JSON.parse((ids.get() as string | undefined) ?? '{}') as SubscriptionIds,
    saveWatchIds: (given: SubscriptionIds) => putIds.run(JSON.stringify(given)),
  })
}
