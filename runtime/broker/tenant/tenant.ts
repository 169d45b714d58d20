/**
 * A tenant: a database file, its live state, its door and its use-cases, constructed in order. Tenants share
 * only the writer thread and a memory budget.
 */

import { statSync } from 'node:fs'
import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import type { GatewayError } from '#base/register/errors.ts'
import { createChangeFeed } from '#broker/changes/change-feed.ts'
import { createFollowerBacklogs } from '#broker/changes/follower-backlog.ts'
import type { DiskRoom, DiskUse } from '#broker/commit/disk-room.ts'
import { createDoor } from '#broker/commit/door.ts'
import { createNames, type Names } from '#broker/commit/interned-names.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { createHostedContexts } from '#broker/contexts/hosted-contexts.ts'
import { createConsume } from '#broker/entities/consume.ts'
import { createExpiry } from '#broker/entities/expiration.ts'
import { createInventory } from '#broker/entities/inventory.ts'
import { createObserver } from '#broker/entities/observer.ts'
import { createProvision } from '#broker/entities/provision.ts'
import { evolutionOf } from '#broker/history/evolution.ts'
import { forgetHistory } from '#broker/history/forget.ts'
import { createTemporalProvision } from '#broker/history/temporal-provision.ts'
import type { TemporalQuery } from '#broker/history/temporal-requests.ts'
import { createTemporalSearch } from '#broker/history/temporal-search.ts'
import { createForwardedSubscriptions } from '#broker/sources/forwarded-subscriptions.ts'
import { type ContextSourceParts, openContextSources } from '#broker/sources/tenant-sources.ts'
import { createCollisions } from '#broker/state/collisions.ts'
import { originsNoted } from '#broker/state/document-changes.ts'
import { createDocumentDrafts, type DocumentDrafts } from '#broker/state/document-drafts.ts'
import { createLiveState, type LiveState } from '#broker/state/live-state.ts'
import { createStreams, type StreamName, type Streams } from '#broker/state/streams.ts'
import { createUnsettled } from '#broker/state/unsettled.ts'
import { createDeadLetters } from '#broker/subscriptions/dead-letters.ts'
import { createMatcher } from '#broker/subscriptions/matcher.ts'
import { createPeriodic, type PeriodicPorts } from '#broker/subscriptions/periodic.ts'
import { createSubscribe } from '#broker/subscriptions/subscribe.ts'
import { createStatisticsKeeper } from '#broker/subscriptions/subscription-statistics.ts'
import { createThrottling } from '#broker/subscriptions/throttle-timers.ts'
import { createUpkeep } from '#broker/upkeep/folding.ts'
import { replay } from '#broker/upkeep/replay.ts'
import { createRetention, type RetentionSettings } from '#broker/upkeep/retention-policy.ts'
import { createUnfoldedBacklog } from '#broker/upkeep/unfolded-backlog.ts'
import { createEntities, type Entities } from '#store/entities/entity-rows.ts'
import { createShapes } from '#store/entities/entity-shape.ts'
import type { RowBudget } from '#store/entities/recent-rows.ts'
import { createSnapshot, migrate, openReader, type Synchronous } from '#store/file/database.ts'
import { createHistoryEdits } from '#store/history/history-edits.ts'
import { createHistory, type History } from '#store/history/history-rows.ts'
import { createHistorySpans } from '#store/history/history-spans.ts'
import { createRemovableParts } from '#store/history/oldest-parts.ts'
import { createRollUps } from '#store/history/roll-ups.ts'
import { createDeliveries, type Deliveries } from '#store/tables/delivery-rows.ts'
import { createPassedSubscriptions } from '#store/tables/passed-subscription-rows.ts'
import { createRecords } from '#store/tables/records.ts'
import { createContextSources } from '#store/tables/source-rows.ts'
import { createUplinkStates } from '#store/tables/uplink-states.ts'
import type { Writer } from '#store/writer/writer.ts'
import { createDigests } from './digests.ts'
import type { TenantBroker } from './tenant-broker.ts'
import { type Connections, disconnected, type Outside, type TenantParts } from './tenant-connections.ts'

export interface TenantPorts extends Instruments {
  readonly name: string
  readonly file: string
  readonly writer: Writer
  /** The shared budget for documents cached in memory. */
  readonly rowBudget: RowBudget
  /** Disk space; without it, space is unlimited. */
  readonly room?: DiskRoom | undefined
  /** Called when the database proves to be damaged. */
  readonly onDamage: (name: string, file: string, error: GatewayError) => void
}

export interface TenantSettings {
  readonly lingerMs: number
  readonly synchronous: Synchronous
  readonly writebackMs: number
  readonly history: RetentionSettings
}

/** Interval at which upkeep checks whether it needs a group of its own, ms. */
const upkeepEveryMs = 1000

/** Detects writes of several origins to the same attribute. */
function originsOf(
  { metrics, log, clock }: Pick<TenantPorts, 'metrics' | 'log' | 'clock'>,
  entities: Entities,
) {
  const noted = metrics.counter('selvedge_two_origins_total')
  const collisions = createCollisions({ idOf: (rid) => entities.byRid(rid)?.id, clock, noted, log })
  return { collisions, noteOrigins: originsNoted(collisions) }
}

export async function openTenant(ports: TenantPorts, settings: TenantSettings) {
  const { name, file, writer, clock, log, metrics } = ports
  const stored = await openFile(ports, settings)
  const { database, records, entities, history, edits, deliveries, spans } = stored

  const names = createNames(records)
  const live = createLiveState(clock)
  const { collisions, noteOrigins } = originsOf(ports, entities)
  const streams = createStreams({ history, names, live, collisions })
  let outside = disconnected
  let uplinks: ReturnType<Connections['uplinks']> | undefined
  const matcher = createMatcher({
    clock,
    metrics,
    lastDelivery: deliveries.last(),
    find: (stage, id) => documents.find(stage, id),
    onDeliveries: (list) => outside.committed(list),
    onHeld: (one) => followed.throttling.watch(one),
  })
  const documents: DocumentDrafts = createDocumentDrafts({
    entities,
    names,
    streams,
    onChange: matcher.change,
    onRemoved: afterDeletion(settings, history),
    noteOrigins,
  })
  const observer = createObserver({ streams, matcher, metrics })
  const { door, ...kept } = openDoor(ports, settings, { ...stored, names, live, streams, documents })
  const consume = createConsume({ database, entities, live, names, clock })
  const followed = openSubscriptions(
    {
      records,
      contextSources: stored.contextSources,
      find: consume.query,
      query: consume.queryAtOnce,
      door,
      matcher,
      clock,
      log,
    },
    () => outside,
  )
  const evolution = { entities, history, edits, records, names, live, streams }
  const following = createChangeFeed({ ...evolution, spans, door, isHeld: kept.isHeld })
  // Reads in one transaction, because the writer thread may split a chunk between two reads.
  const evolve = database.transaction((id: string, query: TemporalQuery) => evolutionOf(evolution, id, query))
  const broker: TenantBroker = Object.freeze({
    ...createProvision({ door, documents, observer, retrieve: consume.retrieve, query: consume.query }),
    ...consume,
    history: (id, query) => evolve(id, query),
    temporal: Object.freeze({
      ...createTemporalSearch({
        ...evolution,
        database,
        rollUps: stored.rollUps,
        clock,
        find: consume.query,
      }),
      ...createTemporalProvision({ ...evolution, door, documents, observer }),
    }),
    subscriptions: followed.subscriptions,
    registrations: followed.sources.registrations.broker,
    forwardedSubscriptions: createForwardedSubscriptions({ rows: stored.passedSubscriptions, door }),
    hosted: createHostedContexts({ records, door, clock, inUse: followed.contexts }),
    inventory: createInventory({ shapes: createShapes(database), names }),
    sourceSubscriptions: followed.sources.subscribe.broker,
    digests: createDigests({ following, records, collisions, history: (id, query) => evolve(id, query) }),
    deadLetters: deadLettersOf({ door, matcher, sources: followed.sources.subscribe }, deliveries),
    validity: () => ({ change: following.position().n, until: entities.firstExpiry() }),
  } satisfies TenantBroker)

  // Subscriptions to context sources have negative numbers.
  const holderOf = (i: number) => (i < 0 ? followed.sources.subscribe : matcher)
  const inside: TenantParts = {
    name,
    door,
    deliveries,
    matcher,
    sources: followed.sources.subscribe,
    entityOf: (id) => consume.retrieve(id) ?? consume.last(id),
    current: consume.retrieve,
    streamName: (s) => streamName({ history, names }, s),
    history: broker.history,
    following,
    digests: broker.digests,
    uplinkStates: stored.uplinkStates,
    statistics: createStatisticsKeeper({ get: (i) => holderOf(i).get(i) }),
    backlog: createUnfoldedBacklog(
      { spans, live, retained: stored.retained, logBytes: kept.logBytes, followers: kept.followers },
      settings.history,
    ),
  }

  return Object.freeze({
    name,
    file,
    broker,
    door,
    database,
    records,
    documents,
    streams,
    observer,
    following,
    connect(connections: Connections): void {
      outside = connections.outbox(inside)
      uplinks = connections.uplinks(inside)
    },
    /** Stops the senders; later deliveries stay on disk. */
    async disconnect(): Promise<void> {
      await uplinks?.close()
      await outside.close()
    },
    /** Values for gauges. */
    status: () => ({
      entities: documents.count(),
      liveStreams: live.streamCount(),
      tail: live.tailCount(),
      ...kept.status(),
      ...door.status(),
    }),
    /** Its disk use. */
    extent: () => extentOf(file, kept.pageBytes()),
    /** Finishes the queue and closes the file. Unwritten state in memory is replayed at the next start. */
    async close(): Promise<void> {
      kept.stop()
      followed.stop()
      await door.close()
      entities.forgetAll()
      database.close()
      await writer.close(name)
    },
  })
}

function extentOf(file: string, { whole, free }: { readonly whole: number; readonly free: number }): DiskUse {
  const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return {
    freeBytes: free,
    growthBytes: Math.max(0, whole - sizeOf(file)),
    walBytes: sizeOf(`${file}-wal`),
  }
}

/** Subscriptions to entities and to context sources, with their timers. */
function openSubscriptions(
  ports: PeriodicPorts & Pick<ContextSourceParts, 'query'> & Pick<Parts, 'records' | 'contextSources'>,
  outside: () => Outside,
) {
  const onEndpointChange = (endpoint: string): void => outside().reread(endpoint)
  const periodic = createPeriodic(ports)
  const throttling = createThrottling(ports)
  const subscriptions = createSubscribe({ ...ports, periodic, onEndpointChange, streams: outside })
  const sources = openContextSources({ ...ports, rows: ports.contextSources }, onEndpointChange)
  const whole = { limit: Number.POSITIVE_INFINITY, offset: 0 }
  return {
    subscriptions,
    sources,
    throttling,
    /** URLs of the contexts that subscriptions use. */
    contexts: () =>
      [
        ...subscriptions.list(whole).views,
        ...sources.subscribe.broker.list(whole).views.map(({ one }) => one),
      ].flatMap(({ subscription: { jsonldContext } }) => jsonldContext ?? []),
    stop(): void {
      sources.stop()
      periodic.stop()
      throttling.stop()
    },
  }
}

/** The action on deletion of an entity, besides deleting it. */
function afterDeletion({ history: { afterDeletion: what } }: TenantSettings, history: History) {
  return what === 'remove'
    ? (stage: Stage, rid: number): void => forgetHistory(history, stage, rid)
    : undefined
}

const deadLettersOf = (ports: Pick<TenantParts, 'door' | 'matcher' | 'sources'>, rows: Deliveries) =>
  createDeadLetters({ ...ports, rows, subscribed: (i) => subscribedBy(i, ports) })

/** The subscription with this number; subscriptions to context sources have negative numbers. */
function subscribedBy(i: number, { matcher, sources }: Pick<TenantParts, 'matcher' | 'sources'>) {
  if (i < 0) {
    const source = sources.get(i)
    return source && { i, endpoint: source.endpoint, id: source.one.subscription.id }
  }
  const registered = matcher.get(i)
  return registered && { i, endpoint: registered.endpoint, id: registered.subscription.id }
}

/** The parts that the door writes and upkeep works on. */
interface Parts extends Awaited<ReturnType<typeof openFile>> {
  readonly names: Names
  readonly live: LiveState
  readonly streams: Streams
  readonly documents: DocumentDrafts
}

/** Replays the log into memory, then opens the door, with upkeep attached to its groups. */
function openDoor(ports: TenantPorts, settings: TenantSettings, parts: Parts) {
  const { name: tenant, writer, clock, log, metrics } = ports
  const { records, entities, live, streams, documents } = parts
  const { room } = ports
  const followers = createFollowerBacklogs()
  const retention = createRetention(
    { tenant, ...parts, clock, log, metrics, room, followers },
    settings.history,
  )
  const expiry = createExpiry({ entities, clock, documents: () => documents })
  const unsettled = createUnsettled({ tenant, ...parts, clock, log, documents: () => documents })
  const upkeep = createUpkeep(
    {
      live,
      streams,
      records,
      clock,
      metrics,
      retention,
      expiry,
      unsettled,
      room,
      documents: () => documents,
    },
    settings,
  )
  const read = replay(parts)
  clock.trust?.notBefore(read.at)
  log.info('store.replayed', { tenant, rows: read.rows, observations: read.observations })
  const number = records.logLast()
  const door = createDoor(
    {
      tenant,
      writer,
      clock,
      log,
      metrics,
      number,
      at: read.at,
      upkeep,
      room,
      snapshot: createSnapshot(parts.database),
      onDamage: (error) => ports.onDamage(tenant, ports.file, error),
    },
    settings,
  )
  let timer = setTimeout(check, upkeepEveryMs).unref()
  function check(): void {
    try {
      if (upkeep.isDue()) door.nudge()
    } catch (error) {
      // The disk cannot be read now.
      log.error('gateway.fault', { error, during: 'upkeep' })
    }
    const ms = room?.isShort() === true ? limits.shrinkEveryMs.value : upkeepEveryMs
    timer = setTimeout(check, ms).unref()
  }
  return {
    door,
    isHeld: unsettled.isHeld,
    followers,
    logBytes: upkeep.logBytes,
    status: () => ({ logBytes: upkeep.logBytes(), unsettled: unsettled.count() }),
    pageBytes: parts.retained.pageBytes,
    stop: () => clearTimeout(timer),
  }
}

function streamName(
  { history, names }: { history: History; names: Names },
  s: number,
): StreamName | undefined {
  const row = history.stream(s)
  if (row === undefined) return undefined
  const mirror = row.mirror === null ? undefined : names.text(row.mirror)
  return { name: names.text(row.name)!, dataset: row.dataset, mirror, shape: row.shape }
}

/** Migrates the file to the current format, opens it in the writer, and opens it for reading. */
async function openFile({ name, file, writer, log, rowBudget }: TenantPorts, settings: TenantSettings) {
  const format = migrate(file)
  if (format.from !== format.to) log.info('store.migrated', { tenant: name, ...format })
  await writer.open(name, file, settings.synchronous)
  const database = openReader(file)
  log.debug('store.opened', { tenant: name, file })
  return {
    database,
    records: createRecords(database),
    entities: createEntities(database, rowBudget),
    history: createHistory(database),
    edits: createHistoryEdits(database),
    retained: createRemovableParts(database),
    rollUps: createRollUps(database),
    deliveries: createDeliveries(database),
    contextSources: createContextSources(database),
    passedSubscriptions: createPassedSubscriptions(database),
    spans: createHistorySpans(database),
    uplinkStates: createUplinkStates(database),
  }
}

export type Tenant = Awaited<ReturnType<typeof openTenant>>
