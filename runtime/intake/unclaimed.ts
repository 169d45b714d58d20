/**
 * Topics that no bridge reads: their publication count, the last payload, and the newest frames, held in
 * memory so that mapping the topic releases them. Memory is bounded: the topic with the most bytes loses its
 * oldest frame first, and the topic silent for longest is dropped from the list. A restart empties the list.
 *
 * Also decides when the log line `intake.unclaimed` is written: once for each topic added to the list. After
 * a burst of `limits.unclaimedLinesMax` lines, at most one line per second is written; it states how many
 * were omitted.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Frame } from '#contract'

export interface UnclaimedTopic {
  readonly topic: string
  /** Frames since it was first seen. */
  readonly count: number
  /** Milliseconds since 1970 UTC. */
  readonly firstSeenAt: number
  readonly lastSeenAt: number
  readonly source: string | undefined
  /** The first bytes of the last payload, and its size. */
  readonly lastPayload: Uint8Array
  readonly lastBytes: number
  /** The newest frames, oldest first. */
  readonly frames: readonly Frame[]
}

export interface Unclaimed {
  note(frame: Frame): void
  get(topic: string): UnclaimedTopic | undefined
  /** The most recently published topic first. */
  all(): readonly UnclaimedTopic[]
  /** Removes and returns the topics for which `isWanted` holds. */
  remove(isWanted: (topic: string) => boolean): readonly UnclaimedTopic[]
}

export interface UnclaimedPorts {
  /** The bridge that could read a frame if its topic were mapped. */
  readonly readerOf: (frame: Frame) => string | undefined
  readonly monotonic: () => number
  readonly log: Log
  readonly metrics: Metrics
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
interface Entry extends Mutable<Omit<UnclaimedTopic, 'frames'>> {
  frames: Frame[]
  bytes: number
}

/** Approximate memory of an entry or frame beside its bytes. */
const overheadBytes = 400
const topicShownMax = 256

export function createUnclaimed({ readerOf, monotonic, log, metrics }: UnclaimedPorts): Unclaimed {
  const frames = metrics.counter('selvedge_frames_unclaimed_total')
  const topics = new Map<string, Entry>()
  metrics.gauge('selvedge_unclaimed_topics', () => topics.size)
  let bytes = 0
  const report = createReport(monotonic, log)

  const weigh = (entry: Entry, change: number): void => {
    entry.bytes += change
    bytes += change
  }

  function dropOldestFrame(entry: Entry): void {
    const dropped = entry.frames.shift()!
    weigh(entry, -(dropped.payload.length + overheadBytes))
  }

  function forget(entry: Entry): void {
    topics.delete(entry.topic)
    bytes -= entry.bytes
  }

  function shrink(): void {
    while (topics.size > limits.unclaimedTopicsMax.value) forget(topics.values().next().value!)
    while (bytes > limits.unclaimedBytesMax.value) {
      let heaviest: Entry | undefined
      for (const entry of topics.values())
        if (entry.frames.length > 0 && entry.bytes > (heaviest?.bytes ?? 0)) heaviest = entry
      if (heaviest === undefined) forget(topics.values().next().value!)
      else dropOldestFrame(heaviest)
    }
  }

  function entryOf(frame: Frame): Entry {
    const { topic, receivedAt: at } = frame
    const known = topics.get(topic)
    if (known !== undefined) {
      topics.delete(topic)
      topics.set(topic, known)
      return known
    }
    const entry: Entry = {
      topic,
      count: 0,
      firstSeenAt: at,
      lastSeenAt: at,
      source: undefined,
      bytes: 0,
      lastPayload: Buffer.alloc(0),
      lastBytes: 0,
      frames: [],
    }
    topics.set(topic, entry)
    weigh(entry, 2 * topic.length + overheadBytes)
    report(() => ({
      topic: topic.slice(0, topicShownMax),
      source: frame.source,
      readableBy: readerOf(frame),
    }))
    return entry
  }

  return Object.freeze({
    note(frame) {
      frames.value++
      const entry = entryOf(frame)
      const { payload } = frame
      entry.count++
      entry.lastSeenAt = frame.receivedAt
      entry.source = frame.source
      entry.lastBytes = payload.length
      // A payload is a view of the received bytes, so only a copy may be kept.
      entry.lastPayload = Uint8Array.from(payload.subarray(0, limits.payloadShownBytesMax.value))
      if (payload.length <= limits.frameBytesMax.value) {
        entry.frames.push({ ...frame, payload: Uint8Array.from(payload) })
        weigh(entry, payload.length + overheadBytes)
        if (entry.frames.length > limits.unclaimedFramesPerTopicMax.value) dropOldestFrame(entry)
      }
      shrink()
    },
    get: (topic) => topics.get(topic),
    all: () => [...topics.values()].toReversed(),
    remove(isWanted) {
      const removed = [...topics.values()].filter(({ topic }) => isWanted(topic))
      removed.forEach(forget)
      return removed
    },
  } satisfies Unclaimed)
}

/** Logs one line per new topic, but at most one per second in a flood, with the number of omitted lines. */
function createReport(monotonic: () => number, log: Log) {
  let allowance: number = limits.unclaimedLinesMax.value
  let at = monotonic()
  let omitted = 0
  return (facts: () => object): void => {
    const now = monotonic()
    allowance = Math.min(limits.unclaimedLinesMax.value, allowance + (now - at) / 1000)
    at = now
    if (allowance < 1) {
      omitted++
      return
    }
    allowance--
    log.warn('intake.unclaimed', { ...facts(), ...(omitted > 0 ? { omitted } : {}) })
    omitted = 0
  }
}
