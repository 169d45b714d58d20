/**
 * Asks the virtual sensor creator to replace broken sensors, and withdraws replacements of sensors that are
 * well again, no longer judged, or deleted. The wish is on disk before the first request, and a request is
 * repeated until the creator responds. The creator answers a repeated request with the virtual sensor that
 * exists.
 */
import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import type { Log } from '#base/register/log.ts'
import type { BrokerAnswer, BrokerPort } from '#contract'
import { isObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import type { FaultStream, WatchState } from '#plugins/faults/streams/fault-stream.ts'
import type { ReplacementRow, ReplacementStatements } from './replacement-statements.ts'

export interface ReplacementsPorts {
  /** The virtual sensor creator; its requests are GET with a JSON body, as those of the original. */
  readonly creator: BrokerPort
  readonly table: ReplacementStatements
  readonly log: Log
}

export interface Replacements {
  /** Continues with what was open before a restart. */
  start(): void
  /** Called after the state of a stream changed. */
  entered(stream: FaultStream, state: WatchState): void
  /** Called after a stream was deleted: nobody will see it heal. */
  delete(stream: Pick<FaultStream, 'id'>): void
  readonly waiting: () => number
  close(): Promise<void>
}

/** Parameters of the original component. */
const choices = {
  maxDistance: 20_000,
  onlySameObservations: true,
  limitSourceSensors: 8,
  updateInterval: 60,
}
const headers = { 'Content-Type': 'application/json' }

/** The wish for a stream, as it is now. */
interface Replacement {
  readonly row: ReplacementRow
  /** Failed requests in succession. */
  failures: number
  timer: NodeJS.Timeout | undefined
}

export function createReplacements({ creator, table, log }: ReplacementsPorts): Replacements {
  const all = new Map<string, Replacement>()
  const running = new Set<Promise<void>>()
  /** One request at a time: a power cut breaks all sensors of a site at once. */
  const inTurn = createSemaphore()
  let isClosed = false

  function wake(one: Replacement, delay: number): void {
    if (isClosed) return
    clearTimeout(one.timer)
    one.timer = setTimeout(() => {
      const work = request(one).catch((error: unknown) => {
        log.error('plugin.failed', { plugin: 'faults', during: 'a replacement', error })
        retry(one)
      })
      running.add(work)
      void work.finally(() => running.delete(work))
    }, delay).unref()
  }

  function retry(one: Replacement): void {
    one.failures++
    const pauseMs = limits.faultsGatherMs.value * 2 ** one.failures
    wake(one, Math.min(limits.faultsReplacementRetryMs.value, pauseMs))
  }

  const isCurrent = (one: Replacement): boolean => all.get(one.row.stream) === one

  /** Requests what is wished. A wish that is no longer current has been replaced by another one. */
  async function request(one: Replacement): Promise<void> {
    const { stream, sensor: sensorID, wish } = one.row
    if (isCurrent(one)) table.put(one.row)
    const [path, given] =
      wish === 'wanted' ? ['/api/replaceBrokenSensor/', choices] : ['/api/stopVirtualSensor/', {}]
    const answer = await inTurn(async () =>
      isCurrent(one)
        ? creator.exchange({ method: 'GET', path, headers, body: JSON.stringify({ sensorID, ...given }) })
        : undefined,
    )
    if (answer === undefined || !isCurrent(one)) return
    const refusal = refusalOf(answer, wish)
    if (refusal !== undefined) {
      if (one.failures === 0) log.warn('faults.not-replaced', { sensor: sensorID, wish, reason: refusal })
      retry(one)
      return
    }
    log.info('faults.replaced', { sensor: sensorID, wish })
    if (wish === 'wanted') {
      const row = { ...one.row, wish: 'placed' } as const
      table.put(row)
      all.set(stream, { row, failures: 0, timer: undefined })
    } else {
      table.delete(stream)
      all.delete(stream)
    }
  }

  function resume(row: ReplacementRow): void {
    clearTimeout(all.get(row.stream)?.timer)
    const one: Replacement = { row, failures: 0, timer: undefined }
    all.set(row.stream, one)
    if (row.wish !== 'placed') wake(one, limits.faultsGatherMs.value)
  }

  function want(row: ReplacementRow): void {
    try {
      table.put(row)
    } catch (error) {
      // The request saves it again.
      log.error('plugin.failed', { plugin: 'faults', during: 'saving a replacement', error })
    }
    resume(row)
  }

  function withdraw(stream: string): void {
    const row = all.get(stream)?.row
    if (row !== undefined && row.wish !== 'unwanted') want({ ...row, wish: 'unwanted' })
  }

  return Object.freeze({
    start() {
      for (const row of table.all()) resume(row)
    },
    entered({ id: stream, sensorId: sensor, metadata }, state) {
      const known = all.get(stream)?.row.wish
      if (state === 'normal' || state === 'stopped') withdraw(stream)
      const isOpen = known === 'wanted' || known === 'placed'
      if (state !== 'fault' || metadata.isInferred || sensor === undefined || isOpen) return
      if (known !== undefined || all.size < limits.faultsStreamsMax.value)
        want({ stream, sensor, wish: 'wanted' })
    },
    delete: ({ id }) => withdraw(id),
    waiting: () => [...all.values()].filter(({ row }) => row.wish !== 'placed').length,
    async close() {
      isClosed = true
      for (const { timer } of all.values()) clearTimeout(timer)
      await Promise.all(running)
    },
  } satisfies Replacements)
}

/** The reason why a wish was not fulfilled. A replacement that does not exist need not be withdrawn. */
function refusalOf(answer: BrokerAnswer, wish: ReplacementRow['wish']): string | undefined {
  if ('failure' in answer) return answer.reason
  const body = parsedJson(answer.text)
  const [success, description] = ['success', 'description'].map((name) =>
    isObject(body) ? own(body, name) : undefined,
  )
  if (answer.status === 200 && success === true) return undefined
  const isEnvelope = typeof success === 'boolean'
  if (wish === 'unwanted' && isEnvelope && (answer.status === 404 || answer.status === 200)) return undefined
  // The creator responds 200 to a refusal, as the original does.
  if (isEnvelope && typeof description === 'string') return description
  return `${answer.status}: ${answer.text.slice(0, 200)}`
}
