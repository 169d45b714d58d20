/** Checks all shared subscriptions at the broker, at the start and at an interval; retries if it is away. */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { SharedSubscriptions } from './shared-subscriptions.ts'

export interface SubscriptionUpkeepPorts {
  readonly shared: Pick<SharedSubscriptions, 'ids' | 'check'>
  /** Whether the address for notifications is known. */
  readonly isReady: () => boolean
  readonly signal: AbortSignal
}

export function createSubscriptionUpkeep({ shared, isReady, signal }: SubscriptionUpkeepPorts) {
  let trouble: string | undefined
  let rounds = 0

  /** Checks one after the other, at the pace of the broker. */
  async function checkAll(): Promise<string | undefined> {
    let failure: string | undefined
    for (const id of [...shared.ids()]) {
      if (signal.aborted) return failure
      try {
        await shared.check(id)
      } catch (error) {
        failure = `${id}: ${(error as Error).message}`
      }
    }
    return failure
  }

  async function run(): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      if (isReady()) {
        trouble = await checkAll()
        failures = trouble === undefined ? 0 : failures + 1
        rounds++
      } else failures = 1
      const retryMs = limits.orchestratorCheckRetryMs.value * 2 ** Math.min(failures - 1, 10)
      const pauseMs = failures === 0 ? limits.orchestratorCheckMs.value : retryMs
      await delay(Math.min(pauseMs, limits.orchestratorCheckMs.value), undefined, { signal, ref: false })
    }
  }

  return Object.freeze({
    /** Checks one now. If that fails, the next round checks it again. */
    async check(id: string): Promise<void> {
      try {
        await shared.check(id)
      } catch (error) {
        trouble = `${id}: ${(error as Error).message}`
      }
    },
    /** Runs until the plugin ends. */
    start(): void {
      run().catch(() => undefined)
    },
    rounds: () => rounds,
    complaints: (): readonly string[] =>
      trouble === undefined ? [] : [`a subscription cannot be checked: ${trouble}`],
  })
}
