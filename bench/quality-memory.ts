/** Memory that the quality analyser needs for a stream: the parts of the plugin in this process, filled with streams. */
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { limits } from '#base/limits/limits.ts'
import { systemClock } from '#base/time/clock.ts'
import { createTimerWheel } from '#base/time/timer-wheel.ts'
import { iotStream, qoi, rdfsLabel, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { figureNames, figuresOf } from '#plugins/quality/entities/quality-entity.ts'
import { qualityOf } from '#plugins/quality/measures/quality.ts'
import { createRecordRows } from '#plugins/quality/measures/record-rows.ts'
import { usualProperties, usualTable } from '#plugins/quality/measures/usual-properties.ts'
import { createConcordances } from '#plugins/quality/streams/concordances.ts'
import { createKnownStreams } from '#plugins/quality/streams/known-streams.ts'
import { type Stream, streamDeadlines } from '#plugins/quality/streams/stream.ts'

const property = (value: unknown) => ({ type: 'Property', value })
const to = (object: string) => ({ type: 'Relationship', object })
const secondMs = 1000

async function collected(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let i = 0; i < 10; i++) {
    collect()
    // Buffers are freed a moment later.
    await pause(50)
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** @returns bytes per stream that has 30 values, neighbours, written figures and a deadline. */
export async function bytesPerStream(count: number): Promise<number> {
  // Code and caches are there before the first measurement.
  const first = filled(1000)
  const before = await collected()
  const second = filled(count)
  const bytes = ((await collected()) - before) / count
  for (const end of [first, second]) end()
  return bytes
}

/** Fills the parts of the plugin with streams. Returns what ends them. */
function filled(count: number): () => void {
  const sensorId = (i: number): string => `urn:ngsi-ld:Sensor:device-${i}:temperature`
  const idOf = (kind: string, i: number): string => `urn:ngsi-ld:${kind}:device-${i}:temperature`
  // As the broker: entities are read again for each request.
  const entityOf = (id: string): Entity | undefined => {
    const [, , kind, device = ''] = id.split(':')
    const i = Number(device.slice('device-'.length))
    const attributes =
      kind === 'Sensor'
        ? {
            type: sosa.Sensor,
            location: {
              type: 'GeoProperty',
              value: { type: 'Point', coordinates: [10 + (i % 100) / 1000, 56 + i / 1e5] },
            },
            [sosa.observes]: to(idOf('ObservableProperty', i)),
            [qoi.updateinterval]: { ...property(1), [qoi.unit]: property('seconds') },
            [qoi.min]: property(-20),
            [qoi.max]: property(50),
          }
        : kind === 'ObservableProperty'
          ? { type: sosa.ObservableProperty, [rdfsLabel]: property('temperature') }
          : kind === 'IotStream'
            ? {
                type: iotStream.IotStream,
                [iotStream.generatedBy]: to(sensorId(i)),
                [qoi.hasQuality]: to(`urn:ngsi-ld:QoI:${id}`),
              }
            : { type: iotStream.StreamObservation, [iotStream.belongsTo]: to(idOf('IotStream', i)) }
    // Parsed, so that strings and numbers lie in memory as those of a broker do.
    return JSON.parse(JSON.stringify({ id, ...attributes })) as Entity
  }
  const clock = systemClock
  const silence = createTimerWheel<Stream>(
    { clock, due: () => undefined, deadlines: streamDeadlines('silentAt') },
    { tickMs: limits.qualityTickMs.value, slots: limits.qualityWheelSlots.value },
  )
  const streams = createKnownStreams({
    entityOf,
    usual: usualProperties(usualTable({}), 0.8),
    records: createRecordRows(),
    concordances: createConcordances({ radiusMeters: 20_000 }),
    leftOut: { hasRoom: () => true, delete: () => undefined },
    monotonic: clock.monotonic,
    now: clock.now,
    downtimes: () => [],
    changed: (stream) => silence.set(stream, clock.monotonic() + 1e9),
    removed: () => undefined,
    moved: () => undefined,
  })
  for (let i = 0; i < count; i++)
    for (const kind of ['IotStream', 'StreamObservation']) streams.take(entityOf(idOf(kind, i))!)
  const begin = Date.now()
  for (let second = 0; second < 30; second++)
    for (let i = 0; i < count; i++) {
      const time = begin + second * secondMs
      streams.observe(idOf('StreamObservation', i), {
        time,
        value: 20 + Math.sin(second),
        committedAt: time + 20,
      })
    }
  for (const stream of streams.all()) {
    const figures = figuresOf(qualityOf(stream.record, stream.metadata, { now: Date.now(), upSince: begin }))
    stream.written = figureNames
      .map((name) => `${figures.get(name)?.rated}|${figures.get(name)?.absolute}`)
      .join('\n')
    streams.noteUnsaved(stream)
  }
  streams.takeUnsaved()
  return () => {
    if (streams.size() !== count) throw new TypeError('streams are missing')
    silence.close()
  }
}
