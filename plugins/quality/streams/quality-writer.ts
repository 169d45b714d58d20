/**
 * Writes qualities to the broker as economically as possible: a change of a rated value at once, everything else
 * at most once per interval and stream; only attributes whose figures changed, and many streams in one request.
 * What could not be written is written again later, with the figures of then.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { BrokerPort } from '#contract'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import {
  type Figure,
  type Figures,
  hasQuality,
  qualityId,
  qualityType,
} from '#plugins/quality/entities/quality-entity.ts'
import type { Stream } from './stream.ts'
import { createTimerWheel } from './timer-wheel.ts'

export interface QualityWriterPorts {
  readonly broker: BrokerPort
  readonly figures: (stream: Stream) => Figures
  /** Called after the figures of a stream were written. */
  readonly written: (stream: Stream) => void
  readonly clock: Clock
  readonly log: Log
}

export interface QualityWriter {
  /** Writes the quality of a stream, at once or when its interval ends, if it changed. */
  note(stream: Stream): void
  /** Deletes the QoI entity of a stream that was deleted. */
  delete(stream: Stream): void
  /** Streams that wait to be written now. */
  readonly waiting: () => number
  /** The reason why nothing can be written; undefined while writing works. */
  readonly failure: () => string | undefined
  close(): Promise<void>
}

const jsonHeaders = { 'Content-Type': 'application/json' }

/** @param intervalMs between two writes of a stream whose rated values did not change. */
export function createQualityWriter(
  { broker, figures, written, clock, log }: QualityWriterPorts,
  { intervalMs }: { readonly intervalMs: number },
): QualityWriter {
  const queue = new Set<Stream>()
  const deletions = new Set<string>()
  const wheel = createTimerWheel<Stream>(
    { clock, due: enqueue },
    { tickMs: limits.qualityTickMs.value, slots: limits.qualityWheelSlots.value },
  )
  let flushing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let failure: string | undefined
  let isClosed = false

  function enqueue(stream: Stream): void {
    wheel.delete(stream)
    queue.add(stream)
    wake(limits.qualityGatherMs.value)
  }

  function wake(delay: number): void {
    if (isClosed || flushing !== undefined || timer !== undefined) return
    timer = setTimeout(() => {
      timer = undefined
      flushing = flush().finally(() => {
        flushing = undefined
        if (queue.size > 0 || deletions.size > 0) wake(failures === 0 ? 0 : pauseMs())
      })
    }, delay)
  }

  const pauseMs = (): number =>
    Math.min(limits.qualityRetryMs.value, limits.qualityGatherMs.value * 2 ** failures)

  async function flush(): Promise<void> {
    const streams = [...queue].slice(0, limits.qualityBatchStreams.value)
    const changes = streams.map((stream) => changeOf(stream, figures(stream)))
    const changed = changes.filter(({ stream, names }) => names.length > 0 || stream.written === undefined)
    for (const stream of streams) queue.delete(stream)
    const unlinked = streams.filter(({ isLinked }) => !isLinked)
    try {
      const observedAt = msToDateTime(clock.now())
      await send(
        'upsert?options=update',
        changed.map((change) => entityOf(change, observedAt)),
      )
      for (const { stream, texts } of changed) {
        stream.written = texts
        stream.writtenAt = clock.monotonic()
        written(stream)
      }
      await send('update', unlinked.map(linkOf))
      for (const stream of unlinked) stream.isLinked = true
      for (const id of [...deletions].slice(0, limits.qualityBatchStreams.value)) {
        await request('DELETE', `/ngsi-ld/v1/entities/${encodeURIComponent(id)}`)
        deletions.delete(id)
      }
      failures = 0
      failure = undefined
    } catch (error) {
      for (const stream of streams) queue.add(stream)
      failures++
      failure = (error as Error).message
      if (failures === 1) log.warn('quality.unwritten', { broker: broker.address, reason: failure })
    }
  }

  async function send(operation: string, entities: readonly JsonObject[]): Promise<void> {
    if (entities.length === 0) return
    await request('POST', `/ngsi-ld/v1/entityOperations/${operation}`, JSON.stringify(entities))
  }

  /** @throws Error with the reason, if the broker did not do it. */
  async function request(method: string, path: string, body?: string): Promise<void> {
    const answer = await broker.exchange({
      method,
      path,
      headers: body === undefined ? {} : jsonHeaders,
      body,
    })
    if ('failure' in answer) throw new Error(answer.reason)
    const { status, text } = answer
    // A stream or quality that was deleted meanwhile needs nothing.
    if (status < 300 && !(status === 207 && !areMissing(text))) return
    if (status === 404) return
    throw new Error(`${method} ${path.split('?', 1)[0]} was answered with ${status}: ${text.slice(0, 500)}`)
  }

  return Object.freeze({
    note(stream) {
      if (queue.has(stream)) return
      const { isUrgent, names } = changeOf(stream, figures(stream))
      if (isUrgent || !stream.isLinked) return enqueue(stream)
      if (names.length === 0) return
      const dueAt = stream.writtenAt + intervalMs
      if (dueAt <= clock.monotonic()) enqueue(stream)
      else if (!wheel.has(stream)) wheel.set(stream, dueAt)
    },
    delete(stream) {
      queue.delete(stream)
      wheel.delete(stream)
      deletions.add(qualityId(stream.id))
      wake(limits.qualityGatherMs.value)
    },
    waiting: () => queue.size,
    failure: () => failure,
    async close() {
      isClosed = true
      clearTimeout(timer)
      wheel.close()
      await flushing
    },
  } satisfies QualityWriter)
}

/** Attributes of a stream's quality to write. */
interface Change {
  readonly stream: Stream
  readonly names: readonly string[]
  readonly figures: Figures
  /** All figures as text, to compare with later. */
  readonly texts: Readonly<Record<string, string>>
  /** Whether a rated value changed, or nothing was written before. */
  readonly isUrgent: boolean
}

function changeOf(stream: Stream, figures: Figures): Change {
  const { written } = stream
  const texts: Record<string, string> = {}
  const names: string[] = []
  let isUrgent = written === undefined
  for (const [name, figure] of figures) {
    const text = textOf(figure)
    texts[name] = text
    const before = written?.[name]
    if (before === text) continue
    names.push(name)
    if (figure.rated !== before?.slice(0, before.indexOf('|'))) isUrgent ||= figure.rated !== ''
  }
  return { stream, names, figures, texts, isUrgent }
}

const textOf = ({ rated, absolute }: Figure): string => `${rated}|${absolute}`

function entityOf({ stream, names, figures }: Change, observedAt: string): JsonObject {
  const attributes = names.map((name) => [name, { ...figures.get(name)!.attribute, observedAt }] as const)
  return { id: qualityId(stream.id), type: qualityType, ...Object.fromEntries(attributes) }
}

const linkOf = ({ id, types }: Stream): JsonObject => ({
  id,
  type: [...types],
  [hasQuality]: { type: 'Relationship', object: qualityId(id) },
})

/** Whether all errors of a batch are entities that do not exist. */
function areMissing(text: string): boolean {
  const body = parsedJson(text)
  const errors = isObject(body) ? body['errors'] : undefined
  return Array.isArray(errors) && errors.every((one) => JSON.stringify(one).includes('ResourceNotFound'))
}
