/**
 * Follows streams at the message brokers that their access details name. Each message is decoded, stored in
 * the journal, counted, and then acknowledged, so that a crash neither loses nor repeats it. Streams of one
 * broker share a connection.
 *
 * A stream with an observation entity at the context broker is counted there and not followed here.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { SourceMessage, SourcesPort } from '#contract'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import type { StreamSaving } from '#plugins/quality/streams/stream-saving.ts'
import type { AllowedHost } from './access-details.ts'
import type { JournalMessage, MessageJournal } from './message-statements.ts'
import { createNgsiLdSource, type NgsiLdSourcePorts } from './ngsi-ld-source.ts'
import { createSource, type FollowedSource, type MessageSource, type StreamRoute } from './source.ts'
import { readingsOf } from './stream-readings.ts'
import { type WantedSourcesPorts, wantedSources } from './wanted-sources.ts'

export interface ForeignSourcesPorts {
  readonly sources: SourcesPort
  readonly remote: NgsiLdSourcePorts['remote']
  readonly streams: KnownStreams
  readonly entityOf: WantedSourcesPorts['entityOf']
  readonly journal: MessageJournal
  readonly saving: Pick<StreamSaving, 'attempt' | 'attemptIfDue'>
  /** The last message that the saved record of a stream includes. */
  readonly messagesOf: (id: string) => number
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  /** Reports a failure that ends the plugin. */
  readonly fail: (error: unknown) => void
}

export interface ForeignSources {
  /** Counts the messages of the journal that the records do not include, then follows sources. */
  start(): Promise<void>
  /** Reads access details again, soon: a stream or a Service changed. */
  note(): void
  readonly status: () => readonly object[]
  readonly complaints: () => readonly string[]
  close(): Promise<void>
}

/** A message to be stored. */
interface Pending extends JournalMessage {
  readonly owner: MessageSource
  readonly acknowledge: (() => void)[]
}

export function createForeignSources(
  {
    sources: port,
    remote,
    streams,
    entityOf,
    journal,
    clock,
    log,
    signal,
    fail,
    ...ports
  }: ForeignSourcesPorts,
  settings: { readonly hosts: readonly AllowedHost[] },
): ForeignSources {
  const allowed = { ...settings, allowsLoopback: port.allowsLoopback }
  const open = new Map<string, FollowedSource>()
  /** Addresses and mistakes that are not followed, with the number of their streams. */
  let refused: Refusals = new Map()
  let pending: Pending[] = []
  let storeTimer: NodeJS.Timeout | undefined
  let readTimer: NodeJS.Timeout | undefined
  let unstored: string | undefined
  let isStarted = false
  /** Settles when access details were read. */
  let reading: Promise<void> = Promise.resolve()
  /** Latest time given to a value without one, by stream: values that arrive together stay apart. */
  const givenTimes = new Map<string, number>()
  const yieldIfDue = createYield(clock.monotonic, limits.queryTurnMs.value)

  /** Reads the access details of all streams, and follows what they name. */
  async function readAccess(): Promise<void> {
    const found: Refusals = new Map()
    const refuse = (what: string, reason: string): void => noteRefusal(found, what, reason)
    const wanted = await wantedSources({ streams: streams.all(), entityOf, refuse, yieldIfDue }, allowed)
    if (!isStarted) return
    for (const [address, source] of open) {
      if (wanted.has(address)) continue
      open.delete(address)
      void source.end()
    }
    for (const [address, { host, routes }] of wanted) {
      const left = (open.get(address) ?? openSource(address, host)).route(routes)
      if (left > 0) refuse(address, `more than ${limits.qualitySourcePlacesMax.value} places`)
    }
    for (const [what, { reason, streams: count }] of found)
      if (refused.get(what)?.reason !== reason)
        log.warn('quality.source-refused', { source: what, reason, streams: count })
    refused = found
    for (const id of givenTimes.keys()) if (streams.get(id) === undefined) givenTimes.delete(id)
  }

  function openSource(address: string, host: AllowedHost): FollowedSource {
    const broker = { ...host, url: address }
    const source = address.startsWith('http')
      ? createNgsiLdSource({ remote, streams, clock, log }, broker)
      : createSource({ port, clock, log, digests: journal.digestsOf(address), message: take }, broker)
    open.set(address, source)
    return source
  }

  /** Decodes a message for each stream of its places. */
  function take(source: MessageSource, message: SourceMessage, acknowledge: () => void): void {
    const digest = digestOf(message)
    const waiting = message.isResent ? pending.find((one) => one.digest === digest) : undefined
    if (waiting !== undefined) {
      waiting.acknowledge.push(acknowledge)
      return
    }
    if (message.isResent && source.knows(digest)) {
      source.counts.repeated++
      acknowledge()
      return
    }
    const receivedAt = clock.now()
    const observations = source.routesOf(message.places).flatMap((route) => {
      const { readings, reason } = readingsFor(source, route, message, receivedAt)
      if (readings.length === 0) source.noteUnreadable(`${message.topic}: ${reason}`)
      const { id } = route.stream
      return readings.map(
        ({ observedAt, value }) => [id, observedAt ?? givenTime(id, receivedAt), value] as const,
      )
    })
    source.counts.observations += observations.length
    if (observations.length === 0) {
      acknowledge()
      return
    }
    pending.push({
      owner: source,
      source: source.address,
      digest,
      receivedAt,
      observations,
      acknowledge: [acknowledge],
    })
    storeTimer ??= setTimeout(store, limits.qualitySourceStoreMs.value)
  }

  function readingsFor(
    source: MessageSource,
    { stream, access }: StreamRoute,
    message: SourceMessage,
    receivedAt: number,
  ) {
    const { topic, payload, isRetained } = message
    const contentType = message.contentType ?? access.format
    const frame = { topic, payload, contentType, receivedAt, retained: isRetained, source: source.address }
    const { readings, problems } = port.decode({ ...frame, transport: 'bridge-in' })
    const wanted = readingsOf({ id: stream.id, field: access.field, label: stream.metadata.label }, readings)
    // A retained message without a time of its own is an old value of an unknown time.
    const timed = isRetained ? wanted.filter(({ observedAt }) => observedAt !== undefined) : wanted
    if (wanted.length > timed.length) return { readings: timed, reason: 'retained, and without a time' }
    return {
      readings: timed,
      reason: problems[0]?.reason ?? 'no reading of the payload belongs to the stream',
    }
  }

  /** Stores, counts and acknowledges what arrived; in one turn, so that no save comes in between. */
  function store(): void {
    storeTimer = undefined
    const stored = pending.slice(0, limits.qualitySourceBatch.value)
    try {
      journal.add(stored)
    } catch (error) {
      unstored = (error as Error).message
      storeTimer = setTimeout(store, limits.qualitySourceRetryMs.value)
      return
    }
    unstored = undefined
    pending = pending.slice(stored.length)
    if (pending.length > 0) storeTimer = setTimeout(store, 0)
    for (const message of stored) {
      count(message)
      message.owner.learn(message.digest)
    }
    failpoint('quality:stored')
    for (const { acknowledge } of stored) for (const one of acknowledge) one()
    if (journal.length() >= limits.qualitySourceMessages.value) ports.saving.attempt()
    else ports.saving.attemptIfDue()
  }

  function note(): void {
    if (!isStarted) return
    readTimer ??= setTimeout(() => {
      reading = reading
        .then(() => {
          readTimer = undefined
          return readAccess()
        })
        .catch(fail)
    }, limits.qualitySourceGatherMs.value)
  }

  function givenTime(id: string, receivedAt: number): number {
    const time = Math.max(receivedAt, (givenTimes.get(id) ?? 0) + 1)
    givenTimes.set(id, time)
    return time
  }

  function count({ observations, receivedAt }: JournalMessage): void {
    for (const [id, time, value] of observations) streams.count(id, { time, value, committedAt: receivedAt })
  }

  return Object.freeze({
    async start() {
      for (const message of journal.uncounted()) {
        // A stream that was created after the records were saved is not known yet.
        for (const [id] of message.observations) {
          const entity = streams.get(id) === undefined ? entityOf(id) : undefined
          if (entity !== undefined) streams.take(entity)
        }
        const { n, observations } = message
        const missing = observations.filter(([id]) => ports.messagesOf(id) < n)
        count({ ...message, observations: missing })
        await yieldIfDue()
        if (signal.aborted) return
      }
      isStarted = true
      note()
    },
    note,
    status: () => [
      ...[...open.values()].map((source) => source.status()),
      ...[...refused].map(([source, facts]) => ({ source, state: 'refused', ...facts })),
    ],
    complaints: () => [
      ...(unstored === undefined ? [] : [`messages of sources cannot be stored: ${unstored}`]),
      ...[...open.values()].flatMap(({ complaint }) => complaint() ?? []),
      ...[...refused].map(([source, { reason }]) => `streams of ${source} are not followed: ${reason}`),
    ],
    async close() {
      isStarted = false
      clearTimeout(readTimer)
      clearTimeout(storeTimer)
      await reading
      await Promise.all([...open.values()].map((source) => source.close()))
    },
  } satisfies ForeignSources)
}

/** Addresses and streams by what is wrong with them. */
type Refusals = Map<string, { readonly reason: string; streams: number }>

function noteRefusal(refusals: Refusals, what: string, reason: string): void {
  const known = refusals.get(what)
  if (known !== undefined) known.streams++
  else if (refusals.size < limits.qualitySourcesMax.value) refusals.set(what, { reason, streams: 1 })
}

const digestOf = ({ key, payload }: SourceMessage): string =>
  hash('sha1', Buffer.concat([Buffer.from(`${key}\n`), payload]), 'base64url').slice(0, 16)
