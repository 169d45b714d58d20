/**
 * What the index watches at the gateway's own broker, as real subscriptions there, so that everybody sees who follows what. They
 * deliver by the log, so nobody is notified. One that was deleted, or whose callback is not ours any more, is made again.
 */
import { randomBytes } from 'node:crypto'
import type { Log } from '#base/log.ts'
import type { BrokerPort } from '#contract'
import { type Brokers, ownBroker } from './brokers.ts'
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

  async function isThere(id: string, uri: string): Promise<'as wanted' | 'otherwise' | 'not'> {
    const answer = await mdr.exchange({ method: 'GET', path: `${path}/${id}` })
    if (!('status' in answer) || answer.status !== 200) return 'not'
    const body = JSON.parse(answer.text) as {
      readonly notification?: { readonly endpoint?: { readonly uri?: string } }
    }
    return body.notification?.endpoint?.uri === uri ? 'as wanted' : 'otherwise'
  }

  async function make(purpose: string, uri: string): Promise<string> {
    const id = `indexing:${randomBytes(12).toString('hex')}`
    const answer = await mdr.exchange({
      method: 'POST',
      path,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(subscriptionOf(purpose, id, { uri, notifierInfo: follower })),
    })
    if ('status' in answer && answer.status === 201) return id
    const why = 'status' in answer ? answer.text : answer.reason
    failures = [...failures, `cannot subscribe to ${purpose}: ${why}`]
    return ''
  }

  async function ensure(purpose: string, known: string | undefined, address: string): Promise<string> {
    const uri = callbackOf(address, purpose)
    if (known === undefined || known === '') return make(purpose, uri)
    const standing = await isThere(known, uri)
    if (standing === 'as wanted') return known
    if (standing === 'otherwise') await mdr.exchange({ method: 'DELETE', path: `${path}/${known}` })
    else log.warn('indexing.subscription-gone', { broker: mdr.address, subscription: known })
    return make(purpose, uri)
  }

  async function lookAround(): Promise<void> {
    const row = brokers.get(ownBroker)
    const [address] = addresses()
    if (row === undefined || address === undefined) return
    failures = []
    const known = (row.facts['subscriptions'] ?? {}) as Ids
    const ids: Record<string, string> = {}
    for (const purpose of Object.keys(watched)) {
      if (signal.aborted) return
      ids[purpose] = await ensure(purpose, known[purpose], address)
    }
    if (signal.aborted || JSON.stringify(ids) === JSON.stringify(known)) return
    const now = brokers.get(ownBroker)
    if (now !== undefined) brokers.set(ownBroker, { facts: { ...now.facts, subscriptions: ids } })
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
