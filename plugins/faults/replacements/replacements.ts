/**
 * Asks the virtual sensor creator to replace broken sensors, and withdraws replacements of sensors that are
 * well again. The wish is on disk before the first request, and a request is repeated until the creator
 * responds. The creator answers a repeated request with the virtual sensor that exists.
 */
import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import type { Log } from '#base/register/log.ts'
import type { BrokerAnswer, BrokerPort } from '#contract'
import { isObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import type { FaultStream, WatchState } from '#plugins/faults/streams/fault-stream.ts'

export interface ReplacementsPorts {
  /** The virtual sensor creator; its requests are GET with a JSON body, as those of the original. */
  readonly creator: BrokerPort
  /** Saves streams; to be called before the creator may act. */
  readonly save: (stream: FaultStream) => void
  readonly log: Log
}

export interface Replacements {
  /** Called after the state of a stream changed. */
  entered(stream: FaultStream, state: WatchState): void
  /** Continues with a stream after a restart. */
  resume(stream: FaultStream): void
  delete(stream: FaultStream): void
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

export function createReplacements({ creator, save, log }: ReplacementsPorts): Replacements {
  /** Streams with an open wish, and the failed requests of each. */
  const open = new Map<FaultStream, number>()
  const timers = new Map<FaultStream, NodeJS.Timeout>()
  const running = new Set<Promise<void>>()
  /** One request at a time: a power cut breaks all sensors of a site at once. */
  const inTurn = createSemaphore()
  let isClosed = false

  function wake(stream: FaultStream, delay: number): void {
    if (isClosed) return
    clearTimeout(timers.get(stream))
    const timer = setTimeout(() => {
      timers.delete(stream)
      const work = request(stream).catch((error: unknown) => {
        log.error('plugin.failed', { plugin: 'faults', during: 'a replacement', error })
        retry(stream)
      })
      running.add(work)
      void work.finally(() => running.delete(work))
    }, delay).unref()
    timers.set(stream, timer)
  }

  function retry(stream: FaultStream): void {
    const failures = (open.get(stream) ?? 0) + 1
    if (!open.has(stream)) return
    open.set(stream, failures)
    wake(stream, Math.min(limits.faultsReplacementRetryMs.value, limits.faultsGatherMs.value * 2 ** failures))
  }

  /** Requests what the record of a stream wishes. */
  async function request(stream: FaultStream): Promise<void> {
    const { sensorId: sensorID, record } = stream
    const wish = record.replacement
    if (wish === undefined || wish === 'placed' || sensorID === undefined) {
      open.delete(stream)
      return
    }
    save(stream)
    const [path, given] =
      wish === 'wanted' ? ['/api/replaceBrokenSensor/', choices] : ['/api/stopVirtualSensor/', {}]
    const answer = await inTurn(() =>
      creator.exchange({ method: 'GET', path, headers, body: JSON.stringify({ sensorID, ...given }) }),
    )
    // The stream may have been deleted, or its state may have changed meanwhile.
    if (!open.has(stream)) return
    if (record.replacement !== wish) {
      wake(stream, 0)
      return
    }
    const refusal = refusalOf(answer, wish)
    if (refusal !== undefined) {
      if (open.get(stream) === 0) log.warn('faults.not-replaced', { sensor: sensorID, wish, reason: refusal })
      retry(stream)
      return
    }
    log.info('faults.replaced', { sensor: sensorID, wish })
    if (wish === 'wanted') record.replacement = 'placed'
    else delete record.replacement
    open.delete(stream)
    save(stream)
  }

  function want(stream: FaultStream, wish: 'wanted' | 'unwanted'): void {
    stream.record.replacement = wish
    open.set(stream, 0)
    wake(stream, limits.faultsGatherMs.value)
  }

  return Object.freeze({
    entered(stream, state) {
      const { replacement } = stream.record
      if (state === 'fault' && !stream.metadata.isInferred && replacement !== 'placed') want(stream, 'wanted')
      if (state === 'normal' && replacement !== undefined) want(stream, 'unwanted')
    },
    resume(stream) {
      const { replacement } = stream.record
      if (replacement === 'wanted' || replacement === 'unwanted') want(stream, replacement)
    },
    delete(stream) {
      open.delete(stream)
      clearTimeout(timers.get(stream))
      timers.delete(stream)
    },
    waiting: () => open.size,
    async close() {
      isClosed = true
      for (const timer of timers.values()) clearTimeout(timer)
      await Promise.all(running)
    },
  } satisfies Replacements)
}

/** The reason why a wish was not fulfilled. A replacement that does not exist need not be withdrawn. */
function refusalOf(answer: BrokerAnswer, wish: 'wanted' | 'unwanted'): string | undefined {
  if ('failure' in answer) return answer.reason
  const body = parsedJson(answer.text)
  const [success, description] = ['success', 'description'].map((name) =>
    isObject(body) ? own(body, name) : undefined,
  )
  if (answer.status === 200 && success === true) return undefined
  const isEnvelope = typeof success === 'boolean'
  if (wish === 'unwanted' && isEnvelope && (answer.status === 404 || answer.status === 200)) return undefined
  return `${answer.status}: ${typeof description === 'string' ? description : answer.text.slice(0, 200)}`
}
