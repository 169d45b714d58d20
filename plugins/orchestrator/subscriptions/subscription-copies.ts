/**
 * Copies of running subscriptions in Redis, with their clients. A copy expires unless it is renewed, so one
 * whose subscription ended while Redis was away does not remain.
 */
import { limits } from '#base/limits/limits.ts'
import type { RedisCopies } from '#plugins/orchestrator/cache/redis-copies.ts'
import type { SharedSubscription, SharedSubscriptions } from './shared-subscriptions.ts'

export interface SubscriptionCopiesPorts {
  readonly shared: Pick<SharedSubscriptions, 'ids' | 'get' | 'bodyOf'>
  readonly copies: Pick<RedisCopies, 'put' | 'remove'>
  /** Yields to other work. */
  readonly rest: () => Promise<void>
}

export function createSubscriptionCopies({ shared, copies, rest }: SubscriptionCopiesPorts) {
  let isCopying = false
  let renewing: NodeJS.Timeout | undefined

  function put(id: string): void {
    const found = shared.get(id)
    if (found === undefined) return
    const { tenant, created, clients } = found
    const copy = {
      id,
      tenant,
      createdAt: at(created),
      clients: [...clients].map(([client, { delivery, since }]) => ({ client, delivery, since: at(since) })),
      subscription: shared.bodyOf(id),
    }
    copies.put({ kind: 'subscription', tenant, id }, copy, limits.orchestratorCopyExpiryMs.value)
  }

  async function putAll(): Promise<void> {
    let count = 0
    for (const id of [...shared.ids()]) {
      put(id)
      if (++count % limits.orchestratorCopyPage.value === 0) await rest()
    }
  }

  /** Sends all copies, unless that is being done. */
  function copyAll(): void {
    if (isCopying) return
    isCopying = true
    putAll()
      // The gateway stops, or the next renewal tries again.
      .catch(() => undefined)
      .finally(() => {
        isCopying = false
      })
  }

  return Object.freeze({
    put,
    remove: ({ id, tenant }: SharedSubscription): void => copies.remove({ kind: 'subscription', tenant, id }),
    copyAll,
    start(): void {
      copyAll()
      renewing = setInterval(copyAll, limits.orchestratorCopyMs.value).unref()
    },
    close: (): void => clearInterval(renewing),
  })
}

const at = (ms: number): string => new Date(ms).toISOString()
