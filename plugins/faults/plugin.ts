/**
 * Fault detection: judges every observation of every stream, and writes faults, the state of streams and
 * verdicts to the broker. This file connects the parts.
 */
import { limits } from '#base/limits/limits.ts'
import { version } from '#base/register/version.ts'
import { createLogLines } from '#client/log-lines.ts'
import { createRouter } from '#client/route-table.ts'
import { definePlugin, type Host, streamHistory } from '#contract'
import { sosa } from '#contract/vocabulary.ts'
import { openWatchedBroker } from '#plugins/faults/brokers/open-watched-broker.ts'
import type { BrokerSettings } from '#plugins/faults/brokers/watched-broker.ts'
import { brokerTables } from '#plugins/faults/brokers/watched-broker-statements.ts'
import { createControlRoutes } from '#plugins/faults/operator/control-routes.ts'
import { createMonitoringRoutes } from '#plugins/faults/operator/monitoring-routes.ts'
import { createStatus } from '#plugins/faults/operator/status.ts'
import { createReplacements } from '#plugins/faults/replacements/replacements.ts'
import type { FaultStream } from '#plugins/faults/streams/fault-stream.ts'
import { createJudging } from '#plugins/faults/streams/judging.ts'
import { createModelOpinions } from '#plugins/faults/streams/model-opinions.ts'
import { createNeighbourhood } from '#plugins/faults/streams/neighbourhood.ts'
import { createOverdue } from '#plugins/faults/streams/overdue.ts'
import { createSaving } from '#plugins/faults/streams/saving.ts'
import { createWatchStatements, tables } from '#plugins/faults/streams/watched-stream-statements.ts'
import { createWatchedStreams } from '#plugins/faults/streams/watched-streams.ts'
import { createWatching } from '#plugins/faults/streams/watching.ts'
import { createFindingWriter } from '#plugins/faults/writes/finding-writer.ts'

/** The plugin's section of the settings. */
export interface FaultsSettings extends BrokerSettings {
  readonly neighbourMeters: number
  /** Address of the virtual sensor creator; that of this gateway by default. */
  readonly virtualSensors?: string | undefined
}

const needs = ['mdr', 'changes', 'database', 'models', 'remote', 'component'] as const

export default definePlugin<FaultsSettings, (typeof needs)[number]>({
  name: 'faults',
  version,
  summary: 'Detects faults and anomalies of every stream',
  needs,
  tables: [...tables, ...brokerTables],
  start,
})

function start(host: Host<FaultsSettings, (typeof needs)[number]>) {
  const { database, settings, clock, signal, fail } = host
  const lines = createLogLines(host.log, clock.now)
  const { log } = lines
  const upSince = clock.now()
  const table = createWatchStatements(database)
  const saving = createSaving({ table, cursor: () => watched.cursor(), clock, fail })
  const neighbours = createNeighbourhood({ radiusMeters: settings.neighbourMeters })
  const judging = createJudging({
    neighbours,
    log,
    judged(stream) {
      saving.note(stream)
      overdue.note(stream)
    },
    found: (stream) => writer.note(stream),
    entered: (stream, state) => replacements.entered(stream, state),
    failed: (stream) => watching.begin(stream),
  })
  const { virtualSensors } = host.settings
  const creator =
    virtualSensors === undefined || host.isOwn(virtualSensors)
      ? host.component('virtual-sensors')
      : host.remote({ url: virtualSensors, isConfigured: true })
  const replacements = createReplacements({
    creator,
    save(stream) {
      saving.note(stream)
      saving.now()
    },
    log,
  })
  const overdue = createOverdue({ judging, isBehind: () => watched.isBehind(), upSince, clock })
  const writer = createFindingWriter({
    broker: () => watched.port,
    entityOf: (id) => watched.entityOf(id),
    written: saving.note,
    clock,
    log,
  })
  const opinions = createModelOpinions({
    models: host.models,
    entityOf: (id) => watched.entityOf(id),
    judge: judging.take,
    changed: saving.note,
  })
  const watching = createWatching({
    judging,
    opinions,
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
  const streams = createWatchedStreams({
    entityOf: (id) => watched.entityOf(id),
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
      writer.note(stream)
      overdue.note(stream)
      replacements.resume(stream)
    },
  })
  const { status, statusOf } = createStatus({ streams, watching })

  /** Applies a request to a stream; it is on disk before the response. */
  function switched<T>(action: string, stream: FaultStream, work: (stream: FaultStream) => T): T {
    const result = work(stream)
    log.info('faults.switched', { stream: stream.id, action })
    saving.now()
    return result
  }

  void watched.start().catch(fail)
  return {
    // Callbacks have a secret of their own.
    open: ['/callback/', '/monitoring/callback/'],
    fetch: createRouter({
      ...createMonitoringRoutes(lines, watched.receive),
      ...createControlRoutes({
        ofSensor: streams.ofSensor,
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
      dropped: judging.dropped(),
      bytes: database.bytes(),
      ...watched.status(),
    }),
    complaints: () => {
      const reason = writer.failure()
      return [
        ...(reason === undefined ? [] : [`findings cannot be written: ${reason}`]),
        ...watched.complaints(),
      ]
    },
    async close(): Promise<void> {
      overdue.close()
      await replacements.close()
      await writer.close()
      await watched.close()
      await watching.close()
      await opinions.close()
      saving.close()
      saving.now()
    },
  }
}
