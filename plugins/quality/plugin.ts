/**
 * The quality analyser: follows every observation, rates each stream, and writes its quality to the broker as
 * an entity that the stream links to. This file connects the parts.
 */
import { limits } from '#base/limits/limits.ts'
import { version } from '#base/register/version.ts'
import { createTimerWheel } from '#base/time/timer-wheel.ts'
import type { BrokerSettings } from '#client/requests/chosen-broker.ts'
import { createLogLines } from '#client/routes/log-lines.ts'
import { createLeftOutStreams } from '#client/streams/left-out-streams.ts'
import { definePlugin, type Host } from '#contract'
import { brokerTables } from '#plugins/quality/brokers/broker-statements.ts'
import { createCallbackRoutes } from '#plugins/quality/brokers/callback-routes.ts'
import { openServedBroker } from '#plugins/quality/brokers/open-served-broker.ts'
import { figuresOf, qualityId } from '#plugins/quality/entities/quality-entity.ts'
import { missingNow, nextMissingAt, qualityOf, ratedState } from '#plugins/quality/measures/quality.ts'
import { createRecordRows } from '#plugins/quality/measures/record-rows.ts'
import type { UsualSettings } from '#plugins/quality/measures/usual-properties.ts'
import { createConfiguration } from '#plugins/quality/operator/configuration.ts'
import { createDescribing } from '#plugins/quality/operator/describing.ts'
import { createEdits, editsTable } from '#plugins/quality/operator/edit-statements.ts'
import { createOperatorRoutes } from '#plugins/quality/operator/operator-routes.ts'
import { createOriginalRoutes } from '#plugins/quality/operator/original-routes.ts'
import { createPropertyTable } from '#plugins/quality/operator/property-table.ts'
import { createStreamRoutes } from '#plugins/quality/operator/stream-routes.ts'
import type { AllowedHost } from '#plugins/quality/sources/access-details.ts'
import { createForeignSources } from '#plugins/quality/sources/foreign-sources.ts'
import { createMessageJournal, messageTables } from '#plugins/quality/sources/message-statements.ts'
import { createConcordances } from '#plugins/quality/streams/concordances.ts'
import { createDowntimes } from '#plugins/quality/streams/downtimes.ts'
import { createEarlyStreams } from '#plugins/quality/streams/early-streams.ts'
import { createKnownStreams } from '#plugins/quality/streams/known-streams.ts'
import { createQualityWriter } from '#plugins/quality/streams/quality-writer.ts'
import { type Stream, streamDeadlines } from '#plugins/quality/streams/stream.ts'
import { createStreamDebugLines } from '#plugins/quality/streams/stream-debug-lines.ts'
import { createStreamGathering } from '#plugins/quality/streams/stream-gathering.ts'
import {
  aliveColumn,
  createStreamStatements,
  reachColumns,
  streamTables,
} from '#plugins/quality/streams/stream-statements.ts'
import { createQualityRoutes } from './quality-routes.ts'

/** The plugin's section of the settings. */
export interface QualitySettings extends BrokerSettings {
  readonly writeIntervalMs: number
  readonly labelSimilarity: number
  readonly neighbourMeters: number
  readonly enableNa: boolean
  readonly maxLogEntries: number
  readonly usualProperties: UsualSettings
  readonly sources: { readonly hosts: readonly AllowedHost[] }
}

const needs = ['mdr', 'changes', 'database', 'remote', 'sources'] as const

export default definePlugin<QualitySettings, (typeof needs)[number]>({
  name: 'quality',
  version,
  summary: 'Rates the quality of every stream',
  needs,
  tables: [[streamTables, editsTable, messageTables, brokerTables].join('\n'), reachColumns, aliveColumn],
  start,
})

function start(host: Host<QualitySettings, (typeof needs)[number]>) {
  const { database, clock, signal, settings, fail } = host
  const lines = createLogLines(host.log, clock.now)
  const { log } = lines
  const configuration = createConfiguration(settings, createEdits(database, 'setting'))
  const properties = createPropertyTable({
    settings: settings.usualProperties,
    edits: createEdits(database, 'property'),
    similarity: () => configuration.value('labelSimilarity'),
  })
  const upSince = clock.now()
  const records = createRecordRows()
  const table = createStreamStatements(database, records)
  const downtimes = createDowntimes(upSince - performance.now(), () => void early.pass())
  const moment = () => ({ now: clock.now(), upSince, downtimes: downtimes.all() })
  const quality = (stream: Stream) => qualityOf(stream.record, stream.metadata, moment())
  const gathering = createStreamGathering(changed)
  const early = createEarlyStreams(gathering.add)
  const silence = createTimerWheel<Stream>(
    { clock, due: gathering.add, deadlines: streamDeadlines('silentAt') },
    { tickMs: limits.qualityTickMs.value, slots: limits.qualityWheelSlots.value },
  )
  const debugLines = createStreamDebugLines(log)
  const writer = createQualityWriter(
    {
      broker: () => served.port,
      figures: (stream) => figuresOf(quality(stream), { enableNa: configuration.value('enableNa') }),
      ratedState: ({ record, metadata }) => ratedState(record, metadata, moment()),
      exists: (id) => served.exists(id),
      isRatedElsewhere: ({ id }) => served.isReplica(qualityId(id)),
      written: (stream) => streams.noteUnsaved(stream),
      clock,
      log,
    },
    { intervalMs: () => configuration.value('writeIntervalMs') },
  )
  const entityOf = (id: string) => served.entityOf(id)
  const most = limits.qualityStreamsMax.value
  const leftOut = createLeftOutStreams({ plugin: 'quality', most, metrics: host.metrics, log })
  const streams = createKnownStreams({
    leftOut,
    entityOf,
    usual: properties,
    records,
    monotonic: clock.monotonic,
    now: clock.now,
    concordances: createConcordances({ radiusMeters: settings.neighbourMeters }),
    downtimes: downtimes.certain,
    changed: gathering.add,
    moved: () => sources.note(),
    removed(stream) {
      gathering.delete(stream)
      early.delete(stream)
      silence.delete(stream)
      debugLines.delete(stream)
      writer.delete(stream)
    },
  })
  const journal = createMessageJournal(database)
  const served = openServedBroker({
    host: { ...host, log },
    streams,
    table,
    journal,
    downtimes,
    upSince,
  })

  const sources = createForeignSources(
    {
      sources: host.sources,
      remote: host.remote,
      streams,
      entityOf,
      journal,
      saving: served.saving,
      messagesOf: table.messagesOf,
      clock,
      log,
      signal,
      fail,
    },
    settings.sources,
  )

  /** Writes the quality of a stream, and waits for its next missing value. */
  function changed(stream: Stream): void {
    if (!downtimes.isSettled()) {
      early.add(stream)
      return
    }
    writer.note(stream)
    const at = moment()
    const { intervalMs } = stream.metadata
    debugLines.note(stream, missingNow(stream.record, intervalMs, at))
    const nextAt = nextMissingAt(stream.record, intervalMs, at)
    if (nextAt === undefined) silence.delete(stream)
    else silence.set(stream, clock.monotonic() + nextAt - at.now)
  }

  async function begin(): Promise<void> {
    await served.start()
    if (signal.aborted) return
    await sources.start()
  }

  const rangesChanged = createDescribing({ streams, entityOf, signal })
  void begin().catch(fail)
  const status = () => ({
    streams: streams.size(),
    unplacedObservations: streams.unplaced(),
    waiting: writer.waiting(),
    bytes: database.bytes(),
    sources: sources.status(),
    ...served.status(),
  })
  return {
    // The page has no data; it prompts for the token that other routes require. Callbacks have a secret.
    open: ['/', '/ui', '/semanticenrichment/ui', '/callback/', '/semanticenrichment/callback/'],
    fetch: createQualityRoutes(
      {
        '/status': { GET: () => Response.json(status()) },
        ...createStreamRoutes({ streams, quality, broker: served.port }),
        ...createOperatorRoutes({ lines, configuration, properties, rangesChanged }),
        ...createCallbackRoutes(served),
      },
      createOriginalRoutes({
        configuration,
        properties,
        rangesChanged,
        subscriptions: served.subscriptions,
      }),
    ),
    status,
    complaints: () => {
      const reason = writer.failure()
      const unwritten = reason === undefined ? [] : [`qualities cannot be written: ${reason}`]
      return [...unwritten, ...leftOut.complaints(), ...sources.complaints(), ...served.complaints()]
    },
    async close(): Promise<void> {
      silence.close()
      await sources.close()
      await writer.close()
      await served.close()
    },
  }
}
