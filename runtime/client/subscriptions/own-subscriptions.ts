/**
 * Keeps a component's subscriptions at the gateway's own broker, so that clients see them there. They only
 * document the watch: the component follows the log, and the broker sends no notification for them. A
 * subscription that was deleted or has a different callback is created again; they are checked every
 * `limits.ownSubscriptionsCheckMs`.
 */
import { randomBytes } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { BrokerPort } from '#contract'
import { subscriptionOf, type Watch } from './watch.ts'

export interface OwnSubscriptionsPorts {
  readonly broker: BrokerPort
  /** Name of the component, for the log. */
  readonly plugin: string
  readonly watches: readonly Watch[]
  /** Ids begin with it. */
  readonly idPrefix: string
  /** Callback address of a purpose; undefined until the listeners are open. */
  readonly callback: (purpose: string) => string | undefined
  /** Ids of the subscriptions by purpose, on disk. */
  readonly ids: () => SubscriptionIds
  readonly saveIds: (ids: SubscriptionIds) => void
  readonly log: Log
  readonly signal: AbortSignal
}

/** Ids by purpose; empty if the subscription was not created. */
export type SubscriptionIds = Readonly<Record<string, string>>

const path = '/ngsi-ld/v1/subscriptions'
/** Marks the subscription of a component. */
export const followerEndpoint = [{ key: 'selvedge:mode', value: 'follower' }]

export function createOwnSubscriptions(ports: OwnSubscriptionsPorts) {
  const { broker, watches, callback, ids, log, signal } = ports
  let failures: readonly string[] = []
  let checking: Promise<void> | undefined

  const note = (failure: string): void => {
    failures = [...failures, failure]
  }

  /** Saves the id before creating the subscription, so that a kill leaves no unknown subscription. */
  const save = (purpose: string, id: string): void => ports.saveIds({ ...ids(), [purpose]: id })

  /** Checks a subscription. Without a valid answer its state is unknown, and it is not created again. */
  async function statusOf(
    id: string,
    uri: string,
  ): Promise<'as expected' | 'different' | 'missing' | 'unknown'> {
    const answer = await broker.exchange({ method: 'GET', path: `${path}/${id}` })
    if ('status' in answer && answer.status === 404) return 'missing'
    if (!('status' in answer) || answer.status !== 200) {
      note(`cannot check ${id}: ${'status' in answer ? answer.text : answer.reason}`)
      return 'unknown'
    }
    const body = JSON.parse(answer.text) as {
      readonly notification?: { readonly endpoint?: { readonly uri?: string } }
    }
    return body.notification?.endpoint?.uri === uri ? 'as expected' : 'different'
  }

  async function make(watch: Watch, uri: string): Promise<void> {
    const { purpose } = watch
    const id = `${ports.idPrefix}${randomBytes(12).toString('hex')}`
    save(purpose, id)
    const answer = await broker.exchange({
      method: 'POST',
      path,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(subscriptionOf(watch, id, { uri, notifierInfo: followerEndpoint })),
    })
    if ('status' in answer && answer.status === 201) return
    note(`cannot subscribe to ${purpose}: ${'status' in answer ? answer.text : answer.reason}`)
    // Without an answer the subscription may exist; the next check finds out.
    if ('status' in answer) save(purpose, '')
  }

  async function ensure(watch: Watch, known: string | undefined, uri: string): Promise<void> {
    if (known === undefined || known === '') return make(watch, uri)
    const status = await statusOf(known, uri)
    if (status === 'as expected' || status === 'unknown') return
    if (status === 'different') {
      const answer = await broker.exchange({ method: 'DELETE', path: `${path}/${known}` })
      const isGone = 'status' in answer && (answer.status === 204 || answer.status === 404)
      if (!isGone) return note(`cannot delete ${known}: ${'status' in answer ? answer.text : answer.reason}`)
    } else {
      const { plugin } = ports
      log.warn('plugin.subscription-gone', { plugin, broker: broker.address, subscription: known })
    }
    await make(watch, uri)
  }

  async function checkAll(): Promise<void> {
    failures = []
    for (const watch of watches) {
      const uri = callback(watch.purpose)
      if (signal.aborted || uri === undefined) return
      await ensure(watch, ids()[watch.purpose], uri)
    }
  }

  /** Creates missing subscriptions. */
  function check(): Promise<void> {
    checking ??= checkAll().finally(() => {
      checking = undefined
    })
    return checking
  }

  /** Checks in the background. */
  function checkSoon(): void {
    void check().catch((error: unknown) => {
      if (!signal.aborted)
        log.error('plugin.failed', { plugin: ports.plugin, during: 'checking subscriptions', error })
    })
  }
  const timer = setInterval(checkSoon, limits.ownSubscriptionsCheckMs.value).unref()

  return Object.freeze({
    check,
    checkSoon,
    close: () => clearInterval(timer),
    /** Failures of the last check; shown by `status`. */
    failures: () => failures,
  })
}
