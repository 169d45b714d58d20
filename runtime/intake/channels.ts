/**
 * Channels: the fields of devices that the intake knows, each with its stream. Provisioning happens here. The
 * commit that stores the first reading of a field also creates the missing sensor-integration entities. So a
 * burst of first frames provisions once. Existing entities are never overwritten.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { DocumentDraft, DocumentDrafts } from '#broker/state/document-drafts.ts'
import type { Streams } from '#broker/state/streams.ts'
import type { LiveStream } from '#broker/state/unwritten.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { Frame, Reading, TimeSource } from '#contract'
import { sosa } from '#contract/vocabulary.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, type Fragment, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { changesBetween } from '#ngsi-ld/entity/entity-draft.ts'
import { appendAttributes } from '#ngsi-ld/entity/merge.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { SiteIds } from './site-ids.ts'
import {
  declaredDevice,
  declaredField,
  type FirstReading,
  hasSameForm,
  idsOf,
  isOlder,
  type KnownEntity,
  learntInterval,
  mayFollow,
  mayLearnInterval,
  missingParts,
  resultTime,
  type SourceAddress,
  simpleResult,
  withOthersOf,
} from './site-model.ts'
import type { Stamp } from './time-rules.ts'
import { learnInterval } from './update-interval.ts'

/** A field of a device. */
export interface Channel {
  readonly ids: SiteIds
  readonly stream: LiveStream
  /** The shape of the stream while it has the unit and time source below. */
  readonly shape: string
  unitCode: string | undefined
  unitText: string | undefined
  timeSource: TimeSource
  /** Times of the first observations, until the interval is learnt or learning is given up. */
  learning: number[] | undefined
}

export interface ChannelsPorts {
  readonly door: Door
  readonly documents: DocumentDrafts
  readonly streams: Streams
  readonly log: Log
  /**
   * Address of the gateway's broker or HTTP listener, or of the external broker, for `iot-stream:providedBy`.
   */
  readonly addressOf: (frame: Frame, format: string) => SourceAddress
}

/** The interval is computed after every `learnEvery` times; learning is given up after `learnTimesMax`. */
const learnEvery = 8
const learnTimesMax = 40

export const channelKey = ({ device, field }: Reading): string => `${device}\u0000${field}`

export function createChannels(ports: ChannelsPorts, settings: Settings['provisioning']) {
  const { documents, streams } = ports
  const channels = new Map<string, Channel>()

  /**
   * Creates all entities that are missing for the first readings of a device's fields. Returns the readings
   * stored by that: each created its StreamObservation.
   */
  function provision(
    stage: Stage,
    firsts: readonly FirstReading[],
    frame: Frame,
    format: string,
  ): readonly Reading[] {
    const { device } = firsts[0]!.reading
    const declared = declaredDevice(settings.devices, device)
    const sighting = { device, fields: firsts, address: ports.addressOf(frame, format), declared }
    const { create, extend } = missingParts((id) => known(stage, id), sighting, settings)
    for (const entity of create) documents.create(stage, entity, 'provisioning')
    for (const { id, fragment } of extend) append(stage, documents.find(stage, id)!, fragment)
    const made = new Set(create.map(({ id }) => id))
    const written = firsts.flatMap(({ reading }) => {
      const { observation } = idsOf(reading, frame.topic, declaredField(declared, reading.field), settings)
      return made.delete(observation) ? [reading] : []
    })
    stage.published(() => {
      for (const { field } of written) ports.log.info('intake.provisioned', { device, field })
    })
    return written
  }

  /**
   * Opens the channel of a reading whose entities exist, and caches it. Returns the channel that will observe
   * the reading. Returns undefined when the reading was written instead, because its unit or time source
   * differs: a late one to history, a newer one as the current result.
   */
  function open(stage: Stage, first: FirstReading, frame: Frame): Channel | undefined {
    const { reading } = first
    const metadata = declaredField(declaredDevice(settings.devices, reading.device), reading.field)
    const ids = idsOf(reading, frame.topic, metadata, settings)
    const draft = documents.find(stage, ids.observation)!
    const result = simpleResult(first, metadata)
    const before = resultOf(draft.entity)
    const fits = before !== undefined && mayFollow(before, result)
    if (before !== undefined && !fits && isOlder(result, before)) {
      recordPast(stage, draft, withOthersOf(before, result))
      return undefined
    }
    const owner = fits ? draft : writeResult(stage, draft, before, result)
    const stream = streams.open(stage, owner, sosa.hasSimpleResult, '', sosa.resultTime)
    const channel: Channel = {
      ids,
      stream,
      shape: stream.shape,
      unitCode: reading.unitCode,
      unitText: reading.unitText,
      timeSource: first.timeSource,
      learning: metadata?.updateInterval === undefined ? [first.observedAt] : undefined,
    }
    if (hasSameForm(resultOf(owner.entity)!, result)) remember(stage, channelKey(reading), channel)
    return fits ? channel : undefined
  }

  /** Writes a result whose form differs from the previous one to the StreamObservation. */
  function writeResult(
    stage: Stage,
    draft: DocumentDraft,
    before: AttributeInstance | undefined,
    result: AttributeInstance,
  ): DocumentDraft {
    return append(stage, draft, {
      [sosa.hasSimpleResult]: before === undefined ? result : withOthersOf(before, result),
      [sosa.resultTime]: resultTime(dateTimeToMs(result.observedAt!)!),
    })
  }

  /** Adds a result to the history only: it has its own unit, and the current one stays. */
  function recordPast(stage: Stage, { rid, id }: DocumentDraft, result: AttributeInstance): void {
    const instances = [[sosa.hasSimpleResult, '', result]]
    streams.record(stage, rid, { kind: 'temporal', id, by: 'provisioning', instances })
  }

  function known(stage: Stage, id: string): KnownEntity | undefined {
    const draft = documents.find(stage, id)
    if (draft === undefined) return undefined
    const isAsMade = (name: string): boolean => draft.times[name]?.[0] === draft.times[name]?.[1]
    return { entity: draft.entity, isAsMade }
  }

  function append(stage: Stage, draft: DocumentDraft, fragment: Fragment): DocumentDraft {
    const { entity, changes } = appendAttributes(draft.entity, fragment, { noOverwrite: false })
    return documents.update(stage, draft, entity, changes, 'provisioning')
  }

  function remember(stage: Stage, key: string, channel: Channel): void {
    const before = channels.get(key)
    channels.delete(key)
    if (channels.size >= limits.channelsMax.value) channels.delete(channels.keys().next().value!)
    channels.set(key, channel)
    stage.undone(() => {
      if (before === undefined) channels.delete(key)
      else channels.set(key, before)
    })
  }

  /** Records one more time of a stream, and writes its interval once the times are regular. */
  function learn(stage: Stage, channel: Channel, time: number): void {
    const times = channel.learning!
    times.push(time)
    if (times.length % learnEvery !== 0) return
    const seconds = learnInterval(times)
    if (seconds === undefined) {
      if (times.length >= learnTimesMax) channel.learning = undefined
      return
    }
    channel.learning = undefined
    stage.published(() => void writeInterval(channel.ids.sensor, seconds))
  }

  /** A failure is harmless: the interval is learnt again after the next start. */
  async function writeInterval(sensor: string, seconds: number): Promise<void> {
    await ports.door
      .commit((stage) => {
        const draft = documents.find(stage, sensor)
        if (draft === undefined || !mayLearnInterval(draft.entity)) return
        const { entity, changes } = appendAttributes(draft.entity, learntInterval(seconds), {
          noOverwrite: false,
        })
        if (isChanged(draft.entity, entity)) documents.update(stage, draft, entity, changes, 'provisioning')
      })
      .catch((error: unknown) => ports.log.debug('gateway.fault', { error, sensor }))
  }

  return Object.freeze({
    find: (key: string) => channels.get(key),
    /**
     * True when the channel's stream is live and has the unit and time source of the reading, even after
     * other writers.
     */
    fits: (channel: Channel, reading: Reading, stamp: Stamp): boolean =>
      !channel.stream.dropped &&
      channel.stream.shape === channel.shape &&
      channel.unitCode === reading.unitCode &&
      channel.unitText === reading.unitText &&
      channel.timeSource === stamp.timeSource,
    provision,
    open,
    learn,
    /** Drops the channels of a device, so that its next reading is admitted or refused again. */
    forget(device: string): void {
      for (const key of channels.keys()) if (key.startsWith(`${device}\u0000`)) channels.delete(key)
    },
  })
}

export type Channels = ReturnType<typeof createChannels>

/** The result that observations update; people may have added others with a datasetId. */
const resultOf = (entity: Entity): AttributeInstance | undefined =>
  instancesOf(entity, sosa.hasSimpleResult).find(({ datasetId }) => datasetId === undefined)

function isChanged(before: Entity, after: Entity): boolean {
  return changesBetween(before, after).some(
    (change) => JSON.stringify(change.before) !== JSON.stringify(change.after),
  )
}
