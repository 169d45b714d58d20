/**
 * Keeps the index's subscriptions at the gateway's own broker, so that clients see them there. They only
 * document the watch: the index follows the log, and the broker sends no notification for them. A
 * subscription that was deleted or has a different callback is created again.
 */
import { randomBytes } from 'node:crypto'
import type { Log } from '#base/register/log.ts'
import type { BrokerPort } from '#contract'
import { type Brokers, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import { callbackOf, subscriptionOf, watched } from './watched.ts'

export interface OwnSubscriptionsPorts {
  readonly broker: BrokerPort
  readonly brokers: Brokers
  readonly addresses: () => readonly string[]
  readonly log: Log
  readonly signal: AbortSignal
}

type Ids = Readonly<Record<string, string>>

const path = '/ngsi-ld/v1/subscriptions'
const follower = [{ key: 'selvedge:mode', value: 'follower' }]

export function createOwnSubscriptions({ broker, brokers, addresses, log, signal }: OwnSubscriptionsPorts) {
  let failures: readonly string[] = []
  let checking: Promise<void> | undefined

  const note = (failure: string): void => {
    failures = [...failures, failure]
  }

  /** Saves the id before creating the subscription, so that a kill leaves no unknown subscription. */
  function save(purpose: string, id: string): void {
    const row = brokers.get(ownBroker)
    if (row === undefined) return
    const subscriptions = { ...(row.facts['subscriptions'] as Ids | undefined), [purpose]: id }
    brokers.set(ownBroker, { facts: { ...row.facts, subscriptions } })
  }

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

  async function make(purpose: string, uri: string): Promise<void> {
    const id = `indexing:${randomBytes(12).toString('hex')}`
    save(purpose, id)
    const answer = await broker.exchange({
      method: 'POST',
      path,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(subscriptionOf(purpose, id, { uri, notifierInfo: follower })),
    })
    if ('status' in answer && answer.status === 201) return
    note(`cannot subscribe to ${purpose}: ${'status' in answer ? answer.text : answer.reason}`)
    // Without an answer the subscription may exist; the next check finds out.
    if ('status' in answer) save(purpose, '')
  }

  async function ensure(purpose: string, known: string | undefined, address: string): Promise<void> {
    const uri = callbackOf(address, purpose)
    if (known === undefined || known === '') return make(purpose, uri)
    const status = await statusOf(known, uri)
    if (status === 'as expected' || status === 'unknown') return
    if (status === 'different') {
      const answer = await broker.exchange({ method: 'DELETE', path: `${path}/${known}` })
      const isGone = 'status' in answer && (answer.status === 204 || answer.status === 404)
      if (!isGone) return note(`cannot delete ${known}: ${'status' in answer ? answer.text : answer.reason}`)
    } else log.warn('indexing.subscription-gone', { broker: broker.address, subscription: known })
    await make(purpose, uri)
  }

  async function checkAll(): Promise<void> {
    const row = brokers.get(ownBroker)
    const [address] = addresses()
    if (row === undefined || address === undefined) return
    failures = []
    const known = (row.facts['subscriptions'] ?? {}) as Ids
    for (const purpose of Object.keys(watched)) {
      if (signal.aborted) return
      await ensure(purpose, known[purpose], address)
    }
  }

  return Object.freeze({
    /** Creates missing subscriptions. */
    check(): Promise<void> {
      checking ??= checkAll().finally(() => {
        checking = undefined
      })
      return checking
    },
    /** Failures of the last check; shown by `status`. */
    failures: () => failures,
  })
}
