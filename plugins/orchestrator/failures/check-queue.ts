/**
 * Runs checks of streams and subscriptions one after the other, with a rest between two. A check that failed
 * is repeated later, while the others go on. Which notices follow from a check is decided elsewhere.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'

export interface CheckQueuePorts {
  readonly checkStream: (id: string) => Promise<void>
  readonly checkSubscription: (id: string) => Promise<void>
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Checks take at most a quarter of the time. */
const restPerCheck = 3

export function createCheckQueue({ checkStream, checkSubscription, clock, signal }: CheckQueuePorts) {
  /** Streams go before subscriptions, since they may have failed. */
  const streams = new Set<string>()
  const subscriptions = new Set<string>()
  /** Their last check failed. */
  const failedStreams = new Set<string>()
  const failedSubscriptions = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let trouble: string | undefined

  function wake(): void {
    if (signal.aborted) return
    running ??= run().finally(() => {
      running = undefined
      if (streams.size + subscriptions.size > 0) wake()
    })
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const queue = streams.size > 0 ? streams : subscriptions
      const id = queue.values().next().value
      if (id === undefined) return
      queue.delete(id)
      const begunAt = clock.monotonic()
      try {
        await (queue === streams ? checkStream(id) : checkSubscription(id))
        trouble = undefined
      } catch (error) {
        if (signal.aborted) return
        trouble = (error as Error).message
        retryLater(queue === streams ? failedStreams : failedSubscriptions, id)
      }
      const restMs = Math.min(
        restPerCheck * (clock.monotonic() - begunAt),
        limits.orchestratorCheckRestMs.value,
      )
      await delay(restMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  function retryLater(failed: Set<string>, id: string): void {
    failed.add(id)
    timer ??= setTimeout(retry, limits.orchestratorRecheckMs.value).unref()
  }

  function retry(): void {
    clearTimeout(timer)
    timer = undefined
    for (const id of failedStreams) streams.add(id)
    for (const id of failedSubscriptions) subscriptions.add(id)
    failedStreams.clear()
    failedSubscriptions.clear()
    wake()
  }

  return Object.freeze({
    addStream(id: string): void {
      streams.add(id)
      wake()
    },
    addSubscription(id: string): void {
      subscriptions.add(id)
      wake()
    },
    /** Checks a stream again after a pause, in which others are checked. */
    retryStream: (id: string): void => retryLater(failedStreams, id),
    /** Repeats failed checks at once. */
    retry,
    /** Why the last check failed. */
    trouble: () => trouble,
    async close(): Promise<void> {
      clearTimeout(timer)
      await running?.catch(() => undefined)
    },
  })
}
