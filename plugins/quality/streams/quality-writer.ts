/**
 * Writes qualities to the broker with few bytes. A changed rated value is written at once and before others,
 * other figures at most once per interval and stream. A request has only attributes whose figures changed, of
 * many streams. A failed request is repeated later with the figures of that time.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { createTimerWheel } from '#base/time/timer-wheel.ts'
import { createWriteLoop } from '#client/requests/write-loop.ts'
import type { BrokerPort } from '#contract'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import {
  type Figures,
  figureNames,
  hasQuality,
  noQualityYet,
  type QualityFigure,
  qualityId,
  qualityType,
} from '#plugins/quality/entities/quality-entity.ts'
import { onlyOwnLink, ownLink, type Stream, streamDeadlines } from './stream.ts'

export interface QualityWriterPorts {
  readonly broker: () => BrokerPort
  readonly figures: (stream: Stream) => Figures
  /** A number that is equal as long as all rated figures are. */
  readonly ratedState: (stream: Stream) => number
  /** Whether an entity exists at the broker, as far as is known. */
  readonly exists: (id: string) => boolean
  /** Whether another broker rates the stream and replicates its quality to this one. */
  readonly isRatedElsewhere: (stream: Stream) => boolean
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
  { broker, figures, ratedState, exists, isRatedElsewhere, written, clock, log }: QualityWriterPorts,
  { intervalMs }: { readonly intervalMs: () => number },
): QualityWriter {
  /** Streams whose rated values changed; then those of which other figures are due. */
  const urgent = new Set<Stream>()
  const queue = new Set<Stream>()
  const deletions = new Set<string>()
  const wheel = createTimerWheel<Stream>(
    { clock, due: (stream) => enqueue(stream, queue), deadlines: streamDeadlines('dueAt') },
    { tickMs: limits.qualityTickMs.value, slots: limits.qualityWheelSlots.value },
  )
  const loop = createWriteLoop({
    write,
    hasMore: () => waiting() > 0 || deletions.size > 0,
    failed: (reason) => log.warn('quality.unwritten', { broker: broker().address, reason }),
    monotonic: clock.monotonic,
    gatherMs: limits.qualityGatherMs,
    retryMs: limits.qualityRetryMs,
    isResting: () => intervalMs() > 0,
  })

  function enqueue(stream: Stream, to: Set<Stream>): void {
    wheel.delete(stream)
    to.add(stream)
    loop.wake()
  }

  const waiting = (): number => urgent.size + queue.size

  /** Takes the streams of the next request. Some places are never urgent, so that all have their turn. */
  function takeBatch(): Stream[] {
    const most = limits.qualityBatchStreams.value
    const first = [...urgent.values().take(most - limits.qualityBatchOthers.value)]
    const taken = [...first, ...queue.values().take(most - first.length)]
    for (const stream of taken) {
      urgent.delete(stream)
      queue.delete(stream)
    }
    return taken
  }

  async function write(): Promise<string | undefined> {
    const streams = takeBatch().filter((stream) => !isRatedElsewhere(stream))
    const problem = (await writeFigures(streams)) ?? (await writeLinks(streams)) ?? (await writeDeletions())
    if (problem !== undefined) for (const stream of streams) queue.add(stream)
    return problem
  }

  async function writeFigures(streams: readonly Stream[]): Promise<string | undefined> {
    const compared = streams.map((stream) => changeOf(stream, figures(stream)))
    const changes = compared.filter(({ stream, names }) => names.length > 0 || stream.written === undefined)
    const observedAt = msToDateTime(clock.now())
    const problem = await upsert(changes.map((change) => entityOf(change, observedAt)))
    if (problem !== undefined) return problem
    for (const { stream } of compared) stream.record.writtenAt = clock.monotonic()
    for (const { stream, text } of changes) {
      stream.written = text
      written(stream)
    }
    return undefined
  }

  async function writeLinks(streams: readonly Stream[]): Promise<string | undefined> {
    const unlinked = streams.filter((stream) => linkDueAt(stream) <= clock.monotonic())
    // Some brokers answer a batch update with 204, and ignore attributes that the entities do not have.
    const problems = await Promise.all(unlinked.map(appendLink))
    const problem = problems.find((one) => one !== undefined)
    if (problem !== undefined) return problem
    for (const stream of unlinked) stream.links = onlyOwnLink
    for (const stream of streams) {
      const dueAt = linkDueAt(stream)
      if (dueAt !== Number.POSITIVE_INFINITY && exists(stream.id)) wheel.set(stream, dueAt)
    }
    return undefined
  }

  const appendLink = ({ id }: Stream): Promise<string | undefined> => {
    const link = { [hasQuality]: { type: 'Relationship', object: qualityId(id) } }
    return request('POST', `/ngsi-ld/v1/entities/${encodeURIComponent(id)}/attrs`, JSON.stringify(link))
  }

  /**
   * When a stream is to be linked, monotonic ms. A link to another quality stays. If that entity does not
   * exist, it may be created soon; the placeholder of the platform never is.
   */
  function linkDueAt({ links, record }: Stream): number {
    if (links.includes(ownLink) || links.some(exists)) return Number.POSITIVE_INFINITY
    const isFree = links.every((link) => link === noQualityYet)
    return isFree ? Number.NEGATIVE_INFINITY : record.linksAt + limits.qualityLinkWaitMs.value
  }

  async function writeDeletions(): Promise<string | undefined> {
    for (const id of [...deletions].slice(0, limits.qualityBatchStreams.value)) {
      const problem = await request('DELETE', `/ngsi-ld/v1/entities/${encodeURIComponent(id)}`)
      if (problem !== undefined) return problem
      deletions.delete(id)
    }
    return undefined
  }

  async function upsert(entities: readonly JsonObject[]): Promise<string | undefined> {
    if (entities.length === 0) return undefined
    return request('POST', '/ngsi-ld/v1/entityOperations/upsert?options=update', JSON.stringify(entities))
  }

  /** Returns the reason if the broker did not do it. Something that was deleted meanwhile is no reason. */
  async function request(method: string, path: string, body?: string): Promise<string | undefined> {
    const answer = await broker().exchange({
      method,
      path,
      headers: body === undefined ? {} : jsonHeaders,
      body,
    })
    if ('failure' in answer) return answer.reason
    const { status, text } = answer
    if (status === 207 ? areMissing(text) : status < 300 || status === 404) return undefined
    return `${method} ${path.split('?', 1)[0]} was answered with ${status}: ${text.slice(0, 500)}`
  }

  return Object.freeze({
    note(stream) {
      if (urgent.has(stream)) return
      const { record } = stream
      const rated = ratedState(stream)
      const isQueued = queue.has(stream)
      if (isQueued && rated === record.compared) return
      if (rated !== record.compared) {
        record.compared = rated
        if (changeOf(stream, figures(stream)).isUrgent) {
          queue.delete(stream)
          return enqueue(stream, urgent)
        }
      }
      if (isQueued) return
      // All figures are computed when they are written.
      const dueAt = Math.min(record.writtenAt + intervalMs(), linkDueAt(stream))
      if ((wheel.deadline(stream) ?? Number.POSITIVE_INFINITY) <= dueAt) return
      if (dueAt <= clock.monotonic()) enqueue(stream, queue)
      else wheel.set(stream, dueAt)
    },
    delete(stream) {
      urgent.delete(stream)
      queue.delete(stream)
      wheel.delete(stream)
      deletions.add(qualityId(stream.id))
      loop.wake()
    },
    waiting,
    failure: loop.failure,
    close() {
      wheel.close()
      return loop.close()
    },
  } satisfies QualityWriter)
}

/** Attributes of a stream's quality to write. */
interface Change {
  readonly stream: Stream
  readonly names: readonly string[]
  readonly figures: Figures
  /** All figures as text, a line each, to compare with later. */
  readonly text: string
  /** Whether a rated value changed, or nothing was written before. */
  readonly isUrgent: boolean
}

function changeOf(stream: Stream, figures: Figures): Change {
  const written = stream.written?.split('\n')
  const names: string[] = []
  let isUrgent = written === undefined
  const lines = figureNames.map((name, i) => {
    const figure = figures.get(name)
    const before = written?.[i] ?? ''
    const line = figure === undefined ? before : textOf(figure)
    if (figure === undefined || before === line) return line
    names.push(name)
    if (figure.rated !== before.slice(0, Math.max(0, before.indexOf('|')))) isUrgent ||= figure.rated !== ''
    return line
  })
  return { stream, names, figures, text: lines.join('\n'), isUrgent }
}

const textOf = ({ rated, absolute }: QualityFigure): string => `${rated}|${absolute}`

function entityOf({ stream, names, figures }: Change, observedAt: string): JsonObject {
  const attributes = names.map((name) => [name, { ...figures.get(name)!.attribute, observedAt }] as const)
  return { id: qualityId(stream.id), type: qualityType, ...Object.fromEntries(attributes) }
}

/** Whether all errors of a batch are entities that do not exist. */
function areMissing(text: string): boolean {
  const body = parsedJson(text)
  const errors = isObject(body) ? body['errors'] : undefined
  return Array.isArray(errors) && errors.every((one) => JSON.stringify(one).includes('ResourceNotFound'))
}
