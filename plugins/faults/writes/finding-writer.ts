/**
 * Writes findings to the broker, those of many streams in one request, and of each entity the newest values.
 * Records hold what waits, and are saved with the detectors. Values that the broker has are not written
 * again, so a restart neither loses nor repeats a finding.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { createWriteLoop } from '#client/requests/write-loop.ts'
import type { BrokerPort } from '#contract'
import { faultTerms } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import type { FaultStream, FindingWrite } from '#plugins/faults/streams/fault-stream.ts'
import type { FindingQueue } from '#plugins/faults/streams/finding-queue.ts'
import { missingIn } from './missing-members.ts'

export interface FindingWriterPorts {
  readonly findings: Pick<FindingQueue, 'send' | 'remove'>
  readonly broker: () => BrokerPort
  /** The current state of an entity at the broker; undefined if it is unknown. */
  readonly entityOf: (id: string) => Entity | undefined
  /** Called after writes of a stream were done. */
  readonly written: (stream: FaultStream) => void
  /** Resolves when the findings that were added are on disk. */
  readonly saved: () => Promise<void>
  /** A Fault expires this long after its end was written, ms; undefined if the broker may not know expiry. */
  readonly keptMs: () => number | undefined
  readonly clock: Clock
  readonly log: Log
}

export interface FindingWriter {
  /** Writes what waits in the record of a stream. */
  note(stream: FaultStream): void
  delete(stream: FaultStream): void
  /** Streams whose findings wait. */
  readonly waiting: () => number
  /** The reason why nothing can be written; undefined while writing works. */
  readonly failure: () => string | undefined
  close(): Promise<void>
}

const jsonHeaders = { 'Content-Type': 'application/json' }

export function createFindingWriter(ports: FindingWriterPorts): FindingWriter {
  const { findings, broker, entityOf, written, saved, keptMs, clock, log } = ports
  const queue = new Set<FaultStream>()
  const loop = createWriteLoop({
    write,
    hasMore: () => queue.size > 0,
    failed: (reason) => log.warn('faults.unwritten', { broker: broker().address, reason }),
    monotonic: clock.monotonic,
    gatherMs: limits.faultsGatherMs,
    retryMs: limits.faultsRetryMs,
    isResting: () => true,
  })

  /** Writes the findings of some streams. */
  async function write(): Promise<string | undefined> {
    await saved()
    const taken: { readonly stream: FaultStream; readonly writes: readonly FindingWrite[] }[] = []
    let size = 0
    for (const stream of queue) {
      const writes = findings.send(stream)
      taken.push({ stream, writes })
      size += writes.length
      if (size >= limits.faultsBatchWrites.value) break
    }
    const all = taken.flatMap(({ writes }) => writes)
    // A Fault is written before the state that announces it.
    const failure = (await send('upsert', all)) ?? (await send('update', all))
    if (failure !== undefined) return failure
    for (const { stream, writes } of taken) {
      findings.remove(stream, writes)
      if (stream.record.writes.length === 0) queue.delete(stream)
      written(stream)
    }
    return undefined
  }

  /** Without an expiry, Faults would accumulate for years. The clock counts, so a replay keeps its own. */
  function withExpiry(entity: JsonObject): JsonObject {
    const ms = faultTerms.end in entity ? keptMs() : undefined
    return ms === undefined ? entity : { ...entity, expiresAt: msToDateTime(clock.now() + ms) }
  }

  /** Sends the writes of an operation. Returns the reason if the broker did not do it. */
  async function send(
    operation: FindingWrite['operation'],
    all: readonly FindingWrite[],
  ): Promise<string | undefined> {
    const entities = all
      .filter((one) => one.operation === operation)
      .map(({ entity }) => missingIn(entityOf(entity.id), entity))
      .filter((entity) => entity !== undefined)
      .map(withExpiry)
    if (entities.length === 0) return undefined
    const answer = await broker().exchange({
      method: 'POST',
      path: `/ngsi-ld/v1/entityOperations/${operation}${operation === 'upsert' ? '?options=update' : ''}`,
      headers: jsonHeaders,
      body: JSON.stringify(entities),
    })
    if ('failure' in answer) return answer.reason
    const { status, text } = answer
    if (status >= 500 || status === 429 || status === 401 || status === 403)
      return `${operation} was answered with ${status}: ${text.slice(0, 300)}`
    // An entity that was deleted meanwhile is not created again.
    const refused = status < 300 && status !== 207 ? [] : refusedIn(text)
    if (refused.length > 0) log.warn('faults.refused', { broker: broker().address, status, errors: refused })
    return undefined
  }

  return Object.freeze({
    note(stream) {
      if (stream.record.writes.length === 0) return
      queue.add(stream)
      loop.wake()
    },
    delete: (stream) => void queue.delete(stream),
    waiting: () => queue.size,
    failure: loop.failure,
    close: loop.close,
  } satisfies FindingWriter)
}

/** Errors of a batch, without those of entities that do not exist. */
function refusedIn(text: string): string[] {
  const body = parsedJson(text)
  const errors = isObject(body) ? body['errors'] : undefined
  const all = isList(errors) ? errors.map((one) => JSON.stringify(one)) : [text]
  return all.filter((one) => !one.includes('ResourceNotFound')).map((one) => one.slice(0, 300))
}
