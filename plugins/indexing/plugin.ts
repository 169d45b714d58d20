/**
 * The index plugin. It stores streams, sensors and related entities in a database file of its own. It answers
 * queries for them by place, time and theme. This file connects the parts.
 */

import { limits } from '#base/limits/limits.ts'
import { createConcurrencyLimit } from '#base/load/concurrency-limit.ts'
import { version } from '#base/register/version.ts'
import { createOwnSubscriptions, type SubscriptionIds } from '#client/subscriptions/own-subscriptions.ts'
import { definePlugin, type Host, type Running } from '#contract'
import { createBrokerRoutes, openPaths } from '#plugins/indexing/brokers/broker-routes.ts'
import { callbackOf, watched } from '#plugins/indexing/brokers/index-watches.ts'
import { createOwnBrokerIndex } from '#plugins/indexing/brokers/own-broker-index.ts'
import { createRemotes, type RemotesSettings } from '#plugins/indexing/brokers/remote-brokers.ts'
import { createBrokers, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import { createCatalogue } from '#plugins/indexing/entries/catalogue.ts'
import { paths } from '#plugins/indexing/entries/entity-kinds.ts'
import { createSeen } from '#plugins/indexing/entries/seen.ts'
import { prepareQueryStatements } from '#plugins/indexing/entries/statements.ts'
import { tables } from '#plugins/indexing/entries/tables.ts'
import { description } from '#plugins/indexing/query/openapi-index.ts'
import { createSelecting, type Selecting } from '#plugins/indexing/query/selecting.ts'
import { createIndexRoutes } from './index-routes.ts'

/** The plugin's section of the settings. */
export interface IndexingSettings extends RemotesSettings {
  /** When registered brokers are read again in full: a schedule. */
  readonly crawl: string
}

type Needs = 'mdr' | 'changes' | 'database' | 'remote' | 'schedule'
type IndexingHost = Host<IndexingSettings, Needs>

export default definePlugin<IndexingSettings, Needs>({
  name: 'indexing',
  version,
  summary: 'Finds streams and sensors by place, time and theme',
  needs: ['mdr', 'changes', 'database', 'remote', 'schedule'],
  tables,
  start,
})

function start(host: IndexingHost): Running {
  const { mdr: broker, changes, database, log, signal, clock, addresses, fail } = host
  const brokers = createBrokers(database, clock.now)
  const catalogue = createCatalogue(database, clock.monotonic)
  const seen = createSeen()
  const own = createOwnBrokerIndex({ broker, changes, catalogue, brokers, seen, clock, log, signal })
  const { nameOf, nodeOf } = catalogue
  const hops = () => [paths.belongsTo, paths.madeBySensor, paths.generatedBy].map((name) => nameOf(name) ?? 0)
  const prepared = (): Selecting => {
    const sql = prepareQueryStatements(database, hops)
    return createSelecting({ nameOf, nodeOf, sql, seen, monotonic: clock.monotonic })
  }
  let current = prepared()
  const concurrency = createConcurrencyLimit({
    atOnce: limits.indexQueriesMax.value,
    waitingMax: limits.indexQueriesWaiting.value,
    what: 'index queries',
  })
  const selecting: Selecting = {
    deduce: (ids) => current.deduce(ids),
    select: (criteria, page, signal) =>
      concurrency.run(signal, async () => {
        const used = current
        try {
          return await used.select(criteria, page, signal)
        } catch (error) {
          // Retry only if the file was emptied during the query.
          if (used === current) throw error
          return current.select(criteria, page, signal)
        }
      }),
  }
  const subscriptions = createOwnSubscriptions({
    broker,
    plugin: 'indexing',
    watches: watched,
    idPrefix: 'indexing:',
    callback: (purpose) => addresses()[0] && callbackOf(addresses()[0]!, purpose),
    ids: () => (brokers.get(ownBroker)?.facts['subscriptions'] ?? {}) as SubscriptionIds,
    saveIds(subscriptions) {
      const row = brokers.get(ownBroker)
      if (row !== undefined) brokers.set(ownBroker, { facts: { ...row.facts, subscriptions } })
    },
    log,
    signal,
  })
  /** Empties the index but keeps its broker rows. Returns false if a full read is already in progress. */
  async function empty(): Promise<boolean> {
    if (own.position() === undefined) return false
    await own.stop()
    const rows = brokers.all()
    await catalogue.empty()
    brokers.restore(rows)
    current = prepared()
    return true
  }

  /** Logs errors of background work; errors during shutdown are ignored. */
  const reportError = (during: string) => (error: unknown) => {
    if (!signal.aborted) log.error('plugin.failed', { plugin: 'indexing', during, error })
  }
  const remotes = createRemotes({ host, brokers, catalogue, reportError })

  const savePosition = (): void => void own.note().catch(reportError('saving the position of the log'))
  function begin(): void {
    void own.start().then(savePosition).then(subscriptions.checkSoon).catch(fail)
    remotes.start()
  }

  /** The disk took away what was held: follows again from the cursor in the file. */
  async function resume(): Promise<void> {
    await remotes.stop()
    await own.stop()
    catalogue.forgetNames()
    begin()
  }
  database.holdCommits(() => void resume().catch(fail))

  let rebuilding: Promise<void> | undefined
  async function rebuild(): Promise<void> {
    await remotes.stop()
    try {
      if (await empty()) begin()
      else remotes.start()
    } catch (error) {
      // The old index is deleted and the new one was not started.
      fail(error)
      throw error
    }
  }

  const registrations = createBrokerRoutes({ remotes, catalogue, now: clock.now })
  const status = () => ({
    position: own.position() ?? null,
    log: changes.position(),
    bytes: database.bytes(),
    failures: subscriptions.failures(),
    brokers: registrations.all().map((one) => ({ address: one.host, ...one })),
  })

  const routes = createIndexRoutes({
    catalogue,
    own,
    changes,
    broker,
    selecting,
    status,
    context: host.context,
    reachable: () => [broker, ...remotes.reachable()],
    staleWarnings: remotes.warnings,
    seenWarnings: remotes.seenWarnings,
    rebuild: () => (rebuilding ??= rebuild().finally(() => (rebuilding = undefined))),
  })
  begin()
  host.schedule(host.settings.crawl, remotes.crawl)
  const saveTimer = setInterval(savePosition, limits.ownSubscriptionsCheckMs.value).unref()
  return {
    async fetch(request, environment) {
      return (await registrations.fetch(request, environment)) ?? routes.fetch(request, environment)
    },
    list: routes.list,
    // The root path shows no data, so it needs no credentials.
    open: ['/', ...openPaths],
    description,
    status,
    complaints: remotes.complaints,
    async close(): Promise<void> {
      clearInterval(saveTimer)
      subscriptions.close()
      await remotes.stop()
      await own.close()
    },
  }
}
