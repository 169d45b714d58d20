/**
 * Writes findings to the broker. Those of a stream are written in their order, those of many streams in one
 * request. Records hold what waits, and are saved with the detectors; what the broker has already is not
 * written again, so a restart neither loses nor repeats a finding.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { BrokerPort } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { isList, isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import type { FaultStream, FindingWrite } from '#plugins/faults/streams/fault-stream.ts'
import { missingIn } from './written.ts'

export interface FindingWriterPorts {
  readonly broker: () => BrokerPort
  /** The current state of an entity at the broker; undefined if it is unknown. */
  readonly entityOf: (id: string) => Entity | undefined
  /** Called after writes of a stream were done. */
  readonly written: (stream: FaultStream) => void
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

/** Writing takes at most a fifth of the time; findings that arrive meanwhile are gathered. */
const restPerWrite = 4
const jsonHeaders = { 'Content-Type': 'application/json' }

export function createFindingWriter(ports: FindingWriterPorts): FindingWriter {
  const { broker, entityOf, written, clock, log } = ports
  const queue = new Set<FaultStream>()
  let flushing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let failure: string | undefined
  let isClosed = false

  function wake(delay: number): void {
    if (isClosed || flushing !== undefined || timer !== undefined) return
    timer = setTimeout(() => {
      timer = undefined
      const begunAt = clock.monotonic()
      flushing = flush().finally(() => {
        flushing = undefined
        const restMs = restPerWrite * (clock.monotonic() - begunAt)
        if (queue.size > 0) wake(failures === 0 ? restMs : pauseMs())
      })
    }, delay)
  }

  const pauseMs = (): number =>
    Math.min(limits.faultsRetryMs.value, limits.faultsGatherMs.value * 2 ** failures)

  /** Writes the oldest findings of some streams: of each those up to the second one of the same entity. */
  async function flush(): Promise<void> {
    const taken: { readonly stream: FaultStream; readonly writes: readonly FindingWrite[] }[] = []
    let size = 0
    for (const stream of queue) {
      const writes = firstOfEach(stream.record.writes)
      taken.push({ stream, writes })
      size += writes.length
      if (size >= limits.faultsBatchWrites.value) break
    }
    const all = taken.flatMap(({ writes }) => writes)
    // A Fault is written before the state that announces it.
    failure = (await send('upsert', all)) ?? (await send('update', all))
    failures = failure === undefined ? 0 : failures + 1
    if (failures === 1) log.warn('faults.unwritten', { broker: broker().address, reason: failure })
    if (failure !== undefined) return
    for (const { stream, writes } of taken) {
      stream.record.writes = stream.record.writes.filter((one) => !writes.includes(one))
      if (stream.record.writes.length === 0) queue.delete(stream)
      written(stream)
    }
  }

  /** Sends the writes of an operation. Returns the reason if the broker did not do it. */
  async function send(
    operation: FindingWrite['operation'],
    all: readonly FindingWrite[],
  ): Promise<string | undefined> {
    const entities = all
      .filter((one) => one.operation === operation)
      .flatMap(({ entity }) => missingIn(entityOf(entity.id), entity) ?? [])
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
      wake(limits.faultsGatherMs.value)
    },
    delete: (stream) => void queue.delete(stream),
    waiting: () => queue.size,
    failure: () => failure,
    async close() {
      isClosed = true
      clearTimeout(timer)
      await flushing
    },
  } satisfies FindingWriter)
}

function firstOfEach(writes: readonly FindingWrite[]): FindingWrite[] {
  const second = writes.findIndex(
    ({ entity }, i) => writes.findIndex((one) => one.entity.id === entity.id) < i,
  )
  return second === -1 ? [...writes] : writes.slice(0, second)
}

/** Errors of a batch, without those of entities that do not exist. */
function refusedIn(text: string): string[] {
  const body = parsedJson(text)
  const errors = isObject(body) ? body['errors'] : undefined
  const all = isList(errors) ? errors.map((one) => JSON.stringify(one)) : [text]
  return all.filter((one) => !one.includes('ResourceNotFound')).map((one) => one.slice(0, 300))
}
