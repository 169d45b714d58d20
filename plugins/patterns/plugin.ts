/**
 * The pattern extractor: applies registered models to groups of streams, and publishes the pattern of each
 * window as an Event. This file connects the parts.
 */
import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import { version } from '#base/register/version.ts'
import { createLeftOutStreams } from '#client/streams/left-out-streams.ts'
import { definePlugin, type Host, type Running } from '#contract'
import { createEventWriter } from '#plugins/patterns/events/event-writer.ts'
import { createAnalysis } from '#plugins/patterns/groups/analysis.ts'
import { createLogReader } from '#plugins/patterns/groups/log-reader.ts'
import { createPatternStatements, tables } from '#plugins/patterns/groups/pattern-statements.ts'
import { createPlacedStreams } from '#plugins/patterns/groups/placed-streams.ts'
import { createLabelQueue } from '#plugins/patterns/labelling/label-queue.ts'
import { createModelRegistry } from '#plugins/patterns/registrations/model-registry.ts'
import { createModelSubscriptions } from '#plugins/patterns/registrations/model-subscriptions.ts'
import { createNotifications } from '#plugins/patterns/registrations/notifications.ts'
import { createTrainingStatements, trainingTables } from '#plugins/patterns/training/training-statements.ts'
import { createTrainings } from '#plugins/patterns/training/trainings.ts'
import { createPatternRoutes } from './pattern-routes.ts'

/** The plugin's section of the settings. */
export interface PatternsSettings {
  readonly callbackUrl?: string | undefined
  readonly batchOperations: boolean
  readonly keepEventsHours: number
}

const needs = ['mdr', 'changes', 'database', 'models'] as const

export default definePlugin<PatternsSettings, (typeof needs)[number]>({
  name: 'patterns',
  version,
  summary: 'Publishes patterns of groups of streams as events',
  needs,
  tables: [...tables, trainingTables],
  start,
})

const hourMs = 3_600_000

function start(host: Host<PatternsSettings, (typeof needs)[number]>): Running {
  const { mdr, changes, database, clock, log, signal, settings, addresses, fail } = host
  const table = createPatternStatements(database)
  const yieldIfDue = createYield(clock.monotonic, limits.patternTurnMs.value)
  const writer = createEventWriter(
    { broker: mdr, clock, log },
    { keptMs: settings.keepEventsHours * hourMs, usesBatches: settings.batchOperations },
  )
  const most = limits.patternStreamsMax.value
  const leftOut = createLeftOutStreams({ plugin: 'patterns', most, metrics: host.metrics, log })
  const streams = createPlacedStreams({ entityOf: (id) => changes.entity(id)?.entity(), leftOut })
  const labels = createLabelQueue({ models: host.models, publish: writer.put, room: writer.room, log })
  const analysis = createAnalysis({ streams, publish: writer.put, labels, yieldIfDue })
  const reader = createLogReader({
    changes,
    streams,
    analysis,
    writer,
    labels,
    table,
    yieldIfDue,
    clock,
    log,
    signal,
  })
  const subscriptions = createModelSubscriptions({
    broker: mdr,
    address: () => settings.callbackUrl ?? addresses()[0],
    log,
  })
  const models = createModelRegistry({
    table,
    analysis,
    reader,
    labels,
    onnx: host.models,
    subscriptions,
    now: clock.now,
  })
  const notifications = createNotifications({ reader, streams, now: clock.now })
  const trainings = createTrainings({
    broker: mdr,
    table: createTrainingStatements(database),
    log,
    now: clock.now,
    signal,
  })
  const check = (): void => {
    void models.check().catch((error: unknown) => {
      log.error('plugin.failed', { plugin: 'patterns', during: 'checking subscriptions', error })
    })
  }
  trainings.restore()
  void reader.start().then(check).catch(fail)
  const checkTimer = setInterval(check, limits.patternCheckMs.value).unref()
  const status = () => ({
    models: models.all().length,
    ...analysis.counts(),
    reading: reader.isReading(),
    position: reader.position() ?? null,
    log: changes.position(),
    waitingEvents: writer.size(),
    waitingWindows: labels.size(),
    bytes: database.bytes(),
  })
  return {
    fetch: createPatternRoutes({ models, notifications, trainings, status }),
    status,
    complaints() {
      const reason = writer.failure()
      const unwritten = reason === undefined ? [] : [`events cannot be written: ${reason}`]
      return [
        ...models.complaints(),
        ...labels.complaints(),
        ...analysis.complaints(),
        ...leftOut.complaints(),
        ...unwritten,
      ]
    },
    async close(): Promise<void> {
      clearInterval(checkTimer)
      labels.close()
      // Events that are not written are saved with the position of the log.
      await writer.close()
      await reader.close()
    },
  }
}
