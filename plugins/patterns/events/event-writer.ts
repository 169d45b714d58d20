/**
 * Writes Events to the broker. An Event is created once; if it exists, its attributes are updated, so writing
 * it again after a restart changes nothing. A failed request is repeated.
 *
 * Each Event is created with `expiresAt`, after which the broker deletes it; an update does not move it. The
 * time until then is the setting `patterns.keepEventsHours` (72 by default,
 * `config/schema/plugin-schema.ts`). Events that are not written yet are in memory here;
 * `groups/log-reader.ts` saves them with its position, and puts them back after a restart.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { createWriteLoop } from '#client/requests/write-loop.ts'
import type { BrokerPort } from '#contract'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'

export interface EventWriterPorts {
  readonly broker: BrokerPort
  readonly clock: Clock
  readonly log: Log
}

export interface EventWriterSettings {
  /** Events expire at the broker this long after they were created. */
  readonly keptMs: number
  /** Whether requests contain many events. */
  readonly usesBatches: boolean
}

export interface EventWriter {
  /** Writes the current state of an Event; undefined deletes it. */
  put(id: string, entity: JsonObject | undefined): void
  /** Resolves when there is room for more. */
  room(): Promise<void>
  /** Events that are not written yet. */
  readonly waiting: () => IterableIterator<readonly [id: string, entity: JsonObject | undefined]>
  readonly size: () => number
  /** The reason why nothing can be written; undefined while writing works. */
  readonly failure: () => string | undefined
  close(): Promise<void>
}

/** Result of a request for an Event. */
type Outcome = 'done' | 'exists' | { readonly isFinal: boolean; readonly reason: string }

const jsonHeaders = { 'Content-Type': 'application/json' }
const entities = '/ngsi-ld/v1/entities'
const operations = '/ngsi-ld/v1/entityOperations'

export function createEventWriter(
  { broker, clock, log }: EventWriterPorts,
  { keptMs, usesBatches }: EventWriterSettings,
): EventWriter {
  const queue = new Map<string, JsonObject | undefined>()
  const waiters = new Set<() => void>()
  let isClosed = false
  const loop = createWriteLoop({
    write: flush,
    hasMore: () => queue.size > 0,
    failed: (reason) => log.warn('patterns.unwritten', { broker: broker.address, reason }),
    monotonic: clock.monotonic,
    gatherMs: limits.patternGatherMs,
    retryMs: limits.patternRetryMs,
    isResting: () => false,
  })

  const hasRoom = (): boolean => isClosed || queue.size < limits.patternWaitingMax.value

  function release(): void {
    if (!hasRoom()) return
    for (const waiter of waiters) waiter()
    waiters.clear()
  }

  async function flush(): Promise<string | undefined> {
    const some = [...queue].slice(0, limits.patternBatchEvents.value)
    const puts = some.flatMap(([id, entity]) => (entity === undefined ? [] : [[id, entity] as const]))
    const deletions = some.flatMap(([id, entity]) => (entity === undefined ? [id] : []))
    const outcomes = new Map<string, Outcome>()
    await write(
      'create',
      puts.map(([, entity]) => withExpiry(entity)),
      outcomes,
    )
    const existing = puts.filter(([id]) => outcomes.get(id) === 'exists')
    await write(
      'update',
      existing.map(([, entity]) => entity),
      outcomes,
    )
    for (const id of deletions) outcomes.set(id, await one('DELETE', `${entities}/${encodeURIComponent(id)}`))
    let reason: string | undefined
    for (const [id, entity] of some) {
      const outcome = outcomes.get(id)!
      if (typeof outcome === 'object') {
        if (!outcome.isFinal) {
          reason ??= outcome.reason
          continue
        }
        log.warn('patterns.event-refused', { broker: broker.address, id, reason: outcome.reason })
      }
      // It may have changed meanwhile.
      if (queue.get(id) === entity) queue.delete(id)
    }
    release()
    return reason
  }

  const withExpiry = (entity: JsonObject): JsonObject => ({
    ...entity,
    expiresAt: msToDateTime(clock.now() + keptMs),
  })

  async function write(
    operation: 'create' | 'update',
    some: readonly JsonObject[],
    outcomes: Map<string, Outcome>,
  ): Promise<void> {
    if (some.length === 0) return
    if (usesBatches) {
      const found = await batch(`${operations}/${operation}`, some)
      for (const entity of some) outcomes.set(idOf(entity), found(idOf(entity)))
      return
    }
    for (const entity of some) {
      const path = `${entities}/${encodeURIComponent(idOf(entity))}/attrs`
      const { id: _id, type: _type, ...attributes } = entity
      const outcome =
        operation === 'create' ? await one('POST', entities, entity) : await one('PATCH', path, attributes)
      outcomes.set(idOf(entity), outcome)
    }
  }

  async function one(method: string, path: string, body?: JsonObject): Promise<Outcome> {
    const answer = await broker.exchange({
      method,
      path,
      headers: body === undefined ? {} : jsonHeaders,
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    if ('failure' in answer) return { isFinal: false, reason: answer.reason }
    return outcomeOf(answer.status, answer.text)
  }

  /** Returns the outcome per id. An Event that was deleted meanwhile is done. */
  async function batch(path: string, some: readonly JsonObject[]): Promise<(id: string) => Outcome> {
    const answer = await broker.exchange({
      method: 'POST',
      path,
      headers: jsonHeaders,
      body: JSON.stringify(some),
    })
    if ('failure' in answer) return () => ({ isFinal: false, reason: answer.reason })
    if (answer.status !== 207) return () => outcomeOf(answer.status, answer.text)
    const body = parsedJson(answer.text)
    const errors = isObject(body) ? body['errors'] : undefined
    const found = new Map(
      (isList(errors) ? errors : []).filter(isObject).map(({ entityId, error }) => {
        const status = isObject(error) && typeof error['status'] === 'number' ? error['status'] : 500
        return [entityId, outcomeOf(status, JSON.stringify(error))] as const
      }),
    )
    return (id) => found.get(id) ?? 'done'
  }

  return Object.freeze({
    put(id, entity) {
      // The newest state is written last.
      queue.delete(id)
      queue.set(id, entity)
      loop.wake()
    },
    async room() {
      while (!hasRoom()) await new Promise<void>((resolve) => waiters.add(resolve))
    },
    waiting: () => queue.entries(),
    size: () => queue.size,
    failure: loop.failure,
    close() {
      isClosed = true
      release()
      return loop.close()
    },
  } satisfies EventWriter)
}

const idOf = (entity: JsonObject): string => entity['id'] as string

function outcomeOf(status: number, text: string): Outcome {
  if (status < 300 || status === 404) return 'done'
  if (status === 409) return 'exists'
  const reason = `answered with ${status}: ${text.slice(0, 500)}`
  // A broker that is overloaded or fails may accept it later.
  return { isFinal: status < 500 && status !== 429 && status !== 401 && status !== 403, reason }
}
