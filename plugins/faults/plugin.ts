/**
 * Fault detection: judges every observation of every stream, and writes faults, the state of streams and
 * verdicts to the broker. This file connects the parts.
 */
import { limits } from '#base/limits/limits.ts'
import { version } from '#base/register/version.ts'
import type { BrokerSettings } from '#client/requests/chosen-broker.ts'
import { createLogLines } from '#client/routes/log-lines.ts'
import { createRouter } from '#client/routes/route-table.ts'
import { createLeftOutStreams } from '#client/streams/left-out-streams.ts'
import { definePlugin, type Host, streamHistory } from '#contract'
import { sosa } from '#contract/vocabulary.ts'
import { createApproachChooser } from '#plugins/faults/anomalies/approach-chooser.ts'
import { openWatchedBroker } from '#plugins/faults/brokers/open-watched-broker.ts'
import { brokerTables } from '#plugins/faults/brokers/watched-broker-statements.ts'
import { purposes } from '#plugins/faults/brokers/watches.ts'
import { createControlRoutes } from '#plugins/faults/operator/control-routes.ts'
import { createMonitoringRoutes, secretPaths } from '#plugins/faults/operator/monitoring-routes.ts'
import { createStatus } from '#plugins/faults/operator/status.ts'
import {
  createReplacementStatements,
  replacementTables,
} from '#plugins/faults/replacements/replacement-statements.ts'
import { createReplacements } from '#plugins/faults/replacements/replacements.ts'
import type { FaultStream } from '#plugins/faults/streams/fault-stream.ts'
import { createFindingQueue } from '#plugins/faults/streams/finding-queue.ts'
import { createJudging } from '#plugins/faults/streams/judging.ts'
import { addDowntime } from '#plugins/faults/streams/missed-span.ts'
import { createModelOpinions } from '#plugins/faults/streams/model-opinions.ts'
import { createNeighbourhood } from '#plugins/faults/streams/neighbourhood.ts'
import { createOverdue } from '#plugins/faults/streams/overdue.ts'
import { createSaving } from '#plugins/faults/streams/saving.ts'
import {
  createWatchStatements,
  saveTables,
  tables,
} from '#plugins/faults/streams/watched-stream-statements.ts'
import { createWatchedStreams } from '#plugins/faults/streams/watched-streams.ts'
import { createWatching } from '#plugins/faults/streams/watching.ts'
import { createFindingWriter } from '#plugins/faults/writes/finding-writer.ts'

/** The plugin's section of the settings. */
export interface FaultsSettings extends BrokerSettings {
  readonly neighbourMeters: number
  readonly keepFaultsDays: number
  /** Address of the virtual sensor creator; that of this gateway by default. */
  readonly virtualSensors?: string | undefined
}

const needs = ['mdr', 'changes', 'database', 'models', 'remote', 'component'] as const

export default definePlugin<FaultsSettings, (typeof needs)[number]>({
  name: 'faults',
  version,
  summary: 'Detects faults and anomalies of every stream',
  needs,
  tables: [...tables, ...brokerTables, ...replacementTables, ...saveTables],
  start,
})

const dayMs = 86_400_000

function start(host: Host<FaultsSettings, (typeof needs)[number]>) {
  const { database, settings, clock, signal, fail } = host
  const lines = createLogLines(host.log, clock.now)
  const { log } = lines
  const table = createWatchStatements(database)
  const saving = createSaving({ table, cursor: () => watched.cursor(), clock, fail })
  const neighbours = createNeighbourhood({ radiusMeters: settings.neighbourMeters })
  const findings = createFindingQueue({ isKnown: (id) => watched.entityOf(id) !== undefined, log })
  const judging = createJudging({
    neighbours,
    queue: findings,
    log,
    judged(stream) {
      saving.note(stream)
      overdue.note(stream)
    },
    found: (stream) => writer.note(stream),
    entered(stream, state) {
      replacements.entered(stream, state)
      // A restart must know what is open, also if it cannot judge everything again.
      if (state === 'fault') saving.next()
    },
    failed: (stream) => watching.begin(stream),
  })
  const { virtualSensors } = host.settings
  const creator =
    virtualSensors === undefined || host.isOwn(virtualSensors)
      ? host.component('virtual-sensors')
      : host.remote({ url: virtualSensors, isConfigured: true })
  const replacements = createReplacements({
    creator,
    table: createReplacementStatements(database),
    log,
  })
  const overdue = createOverdue({
    judging,
    isBehind: () => watched.isBehind(),
    // A restart must know the silence, since it is not in the log.
    silenced: saving.next,
    clock,
  })
  const writer = createFindingWriter({
    findings,
    broker: () => watched.port,
    entityOf: (id) => watched.entityOf(id),
    written: saving.note,
    saved: saving.settled,
    keptMs: () => (watched.port === host.mdr ? settings.keepFaultsDays * dayMs : undefined),
    clock,
    log,
  })
  const opinions = createModelOpinions({
    models: host.models,
    entityOf: (id) => watched.entityOf(id),
    judge: judging.take,
    changed: saving.note,
  })
  const chooser = createApproachChooser(log)
  const watching = createWatching({
    judging,
    opinions,
    chooser,
    history: (id) =>
      streamHistory(
        watched.port,
        { id, name: sosa.hasSimpleResult, dataset: '' },
        { last: limits.faultsHistoryMax.value, signal },
      ),
    changed(stream) {
      saving.note(stream)
      saving.soon()
      overdue.note(stream)
    },
    log,
    signal,
  })
  const most = limits.faultsStreamsMax.value
  const leftOut = createLeftOutStreams({ plugin: 'faults', most, metrics: host.metrics, log })
  const streams = createWatchedStreams({
    entityOf: (id) => watched.entityOf(id),
    leftOut,
    discovered: saving.note,
    added(stream) {
      saving.note(stream)
      watching.begin(stream)
    },
    described(stream, before) {
      neighbours.describe(stream)
      watching.described(stream, before)
    },
    removed(stream) {
      saving.remove(stream)
      neighbours.delete(stream)
      watching.delete(stream)
      overdue.delete(stream)
      writer.delete(stream)
      findings.delete(stream)
      replacements.delete(stream)
    },
  })
  const watched = openWatchedBroker({
    host: { ...host, log },
    streams,
    watching,
    saving,
    table,
    restored(stream) {
      findings.restore(stream)
      writer.note(stream)
      overdue.note(stream)
    },
    missed(downtime) {
      for (const stream of streams.all()) {
        addDowntime(stream.record, downtime)
        saving.note(stream)
        overdue.note(stream)
      }
    },
  })
  const { status, statusOf } = createStatus({ streams, watching })

  /** Applies a request to a stream; it is on disk before the response. */
  async function switched<T>(
    action: string,
    stream: FaultStream,
    work: (stream: FaultStream) => T,
  ): Promise<T> {
    const result = work(stream)
    log.info('faults.switched', { stream: stream.id, action })
    await saving.now()
    return result
  }

  replacements.start()
  let isStarting = true
  const started = watched.start().then(() => {
    isStarting = false
  })
  void started.catch(fail)
  return {
    // Callbacks have a secret of their own.
    open: secretPaths(purposes),
    fetch: createRouter({
      ...createMonitoringRoutes({ lines, purposes, receive: watched.receive }),
      ...createControlRoutes({
        ofSensor: streams.ofSensor,
        isStarting: () => isStarting,
        stop: (stream) => switched('stop', stream, watching.stop),
        restart: (stream) => switched('restart', stream, watching.restart),
        status,
        statusOf,
      }),
    }),
    status: () => ({
      streams: streams.size(),
      training: watching.training().length,
      waiting: writer.waiting(),
      replacements: replacements.waiting(),
      findings: findings.size(),
      dropped: findings.dropped(),
      bytes: database.bytes(),
      ...watched.status(),
    }),
    complaints: () => {
      const reason = writer.failure()
      return [
        ...(reason === undefined ? [] : [`findings cannot be written: ${reason}`]),
        ...leftOut.complaints(),
        ...watched.complaints(),
      ]
    },
    async close(): Promise<void> {
      overdue.close()
      await replacements.close()
      await writer.close()
      await watched.close()
      await chooser.close()
      await watching.close()
      await opinions.close()
      saving.close()
      await saving.now()
    },
  }
}
