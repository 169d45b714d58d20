/**
 * What the index watches at the gateway's own broker, as real subscriptions there, so that whoever asks for followers sees it. They
 * deliver by the log, so nobody is notified. One that was deleted, or whose callback is not ours any more, is made again.
 */
import { randomBytes } from 'node:crypto'
import type { Log } from '#base/register/log.ts'
import type { BrokerPort } from '#contract'
import { type Brokers, ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import { callbackOf, subscriptionOf, watched } from './watched.ts'

export interface OwnSubscriptionsPorts {
  readonly mdr: BrokerPort
  readonly brokers: Brokers
  readonly addresses: () => readonly string[]
  readonly log: Log
  readonly signal: AbortSignal
}

type Ids = Readonly<Record<string, string>>

const path = '/ngsi-ld/v1/subscriptions'
const follower = [{ key: 'selvedge:mode', value: 'follower' }]

export function createOwnSubscriptions({ mdr, brokers, addresses, log, signal }: OwnSubscriptionsPorts) {
  let failures: readonly string[] = []
  let looking: Promise<void> | undefined

  const note = (failure: string): void => {
    failures = [...failures, failure]
  }

  /** Written before anything is made under it, so that a kill leaves nothing that nobody knows. */
  function save(purpose: string, id: string): void {
    const row = brokers.get(ownBroker)
    if (row === undefined) return
    const subscriptions = { ...(row.facts['subscriptions'] as Ids | undefined), [purpose]: id }
    brokers.set(ownBroker, { facts: { ...row.facts, subscriptions } })
  }

  /** A broker that does not answer, or not now, has not lost it. */
  async function isThere(id: string, uri: string): Promise<'as wanted' | 'otherwise' | 'not' | 'unknown'> {
    const answer = await mdr.exchange({ method: 'GET', path: `${path}/${id}` })
    if ('status' in answer && answer.status === 404) return 'not'
    if (!('status' in answer) || answer.status !== 200) {
      note(`cannot look at ${id}: ${'status' in answer ? answer.text : answer.reason}`)
      return 'unknown'
    }
    const body = JSON.parse(answer.text) as {
      readonly notification?: { readonly endpoint?: { readonly uri?: string } }
    }
    return body.notification?.endpoint?.uri === uri ? 'as wanted' : 'otherwise'
  }

  async function make(purpose: string, uri: string): Promise<void> {
    const id = `indexing:${randomBytes(12).toString('hex')}`
    save(purpose, id)
    const answer = await mdr.exchange({
      method: 'POST',
      path,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(subscriptionOf(purpose, id, { uri, notifierInfo: follower })),
    })
    if ('status' in answer && answer.status === 201) return
    note(`cannot subscribe to ${purpose}: ${'status' in answer ? answer.text : answer.reason}`)
    // Without an answer it may have been made: the next look tells.
    if ('status' in answer) save(purpose, '')
  }

  async function ensure(purpose: string, known: string | undefined, address: string): Promise<void> {
    const uri = callbackOf(address, purpose)
    if (known === undefined || known === '') return make(purpose, uri)
    const standing = await isThere(known, uri)
    if (standing === 'as wanted' || standing === 'unknown') return
    if (standing === 'otherwise') {
      const answer = await mdr.exchange({ method: 'DELETE', path: `${path}/${known}` })
      const isGone = 'status' in answer && (answer.status === 204 || answer.status === 404)
      if (!isGone) return note(`cannot delete ${known}: ${'status' in answer ? answer.text : answer.reason}`)
    } else log.warn('indexing.subscription-gone', { broker: mdr.address, subscription: known })
    await make(purpose, uri)
  }

  async function lookAround(): Promise<void> {
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
    /** Makes what is missing. */
    look(): Promise<void> {
      looking ??= lookAround().finally(() => {
        looking = undefined
      })
      return looking
    },
    /** What could not be made at the last look; told by `status`. */
    failures: () => failures,
  })
}
