/**
 * The quality analyser: follows every observation, rates each stream, and writes its quality to the broker as
 * an entity that the stream links to. This file connects the parts.
 */
import { limits } from '#base/limits/limits.ts'
import { version } from '#base/register/version.ts'
import { definePlugin, type Host } from '#contract'
import { figuresOf } from '#plugins/quality/entities/quality-entity.ts'
import { nextMissingAt, qualityOf } from '#plugins/quality/measures/quality.ts'
import type { Downtime } from '#plugins/quality/measures/stream-record.ts'
import {
  type UsualSettings,
  usualProperties,
  usualTable,
} from '#plugins/quality/measures/usual-properties.ts'
import { createConcordances } from '#plugins/quality/streams/concordances.ts'
import { createKnownStreams } from '#plugins/quality/streams/known-streams.ts'
import { createOwnStreams } from '#plugins/quality/streams/own-streams.ts'
import { createQualityWriter } from '#plugins/quality/streams/quality-writer.ts'
import type { Stream } from '#plugins/quality/streams/stream.ts'
import { createStreamStatements, tables } from '#plugins/quality/streams/stream-statements.ts'
import { createTimerWheel } from '#plugins/quality/streams/timer-wheel.ts'
import { createQualityRoutes } from './quality-routes.ts'

/** The plugin's section of the settings. */
export interface QualitySettings {
  readonly writeIntervalMs: number
  readonly labelSimilarity: number
  readonly neighbourMeters: number
  readonly usualProperties: UsualSettings
}

const needs = ['mdr', 'changes', 'database'] as const

export default definePlugin<QualitySettings, (typeof needs)[number]>({
  name: 'quality',
  version,
  summary: 'Rates the quality of every stream',
  needs,
  tables,
  start,
})

function start(host: Host<QualitySettings, (typeof needs)[number]>) {
  const { mdr, changes, database, clock, log, signal, settings, fail } = host
  const upSince = clock.now()
  const table = createStreamStatements(database)
  const downtimes: Downtime[] = []
  const moment = () => ({ now: clock.now(), upSince })
  const quality = (stream: Stream) => qualityOf(stream.record, stream.metadata, moment())
  const silence = createTimerWheel<Stream>(
    { clock, due: changed },
    { tickMs: limits.qualityTickMs.value, slots: limits.qualityWheelSlots.value },
  )
  const writer = createQualityWriter(
    {
      broker: mdr,
      figures: (stream) => figuresOf(quality(stream)),
      exists: (id) => changes.entity(id) !== undefined,
      written: (stream) => streams.noteWritten(stream),
      clock,
      log,
    },
    { intervalMs: settings.writeIntervalMs },
  )
  const streams = createKnownStreams({
    entityOf: (id) => changes.entity(id)?.entity(),
    monotonic: clock.monotonic,
    usual: usualProperties(usualTable(settings.usualProperties), settings.labelSimilarity),
    concordances: createConcordances({ radiusMeters: settings.neighbourMeters }),
    downtimes: () => downtimes,
    changed,
    removed(stream) {
      silence.delete(stream)
      writer.delete(stream)
    },
  })
  const own = createOwnStreams({
    changes,
    streams,
    table,
    downtimes,
    startedAt: upSince - performance.now(),
    clock,
    log,
    signal,
  })

  /** Writes the quality of a stream, and waits for its next missing value. */
  function changed(stream: Stream): void {
    writer.note(stream)
    const { now } = moment()
    const nextAt = nextMissingAt(stream.record, stream.metadata.intervalMs, { now, upSince })
    if (nextAt === undefined) silence.delete(stream)
    else silence.set(stream, clock.monotonic() + nextAt - now)
  }

  void own.start().catch(fail)
  const status = () => ({
    streams: streams.size(),
    unplacedObservations: streams.unplaced(),
    reading: own.progress(),
    position: own.position() ?? null,
    log: changes.position(),
    waiting: writer.waiting(),
    bytes: database.bytes(),
  })
  return {
    fetch: createQualityRoutes({ streams, quality, status }),
    status,
    complaints: () => {
      const reason = writer.failure()
      return reason === undefined ? [] : [`qualities cannot be written: ${reason}`]
    },
    async close(): Promise<void> {
      silence.close()
      await writer.close()
      await own.close()
    },
  }
}
