/**
 * Registers a broker for a client. The broker must be new, not this gateway, answer as a context broker, and
 * accept our subscriptions. If a check fails, the client learns which one, and nothing remains on either
 * side: subscriptions that cannot be deleted now are deleted as those of a removed broker.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { listIn } from '#client/requests/broker-messages.ts'
import type { BrokerClient, RequestTrouble } from '#client/requests/broker-requests.ts'
import { canonicalAddress } from '#client/requests/same-broker.ts'
import { unsubscribe } from '#client/subscriptions/remote-subscriptions.ts'
import type { BrokerPort, HostBase } from '#contract'
import { alreadyExists, badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { BrokerOrigin, BrokerRow, Brokers } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { isLeaving } from './broker-removal.ts'
import { factsOf, type Remote, type RemoteFacts } from './followed-broker.ts'
import { typeOf } from './index-watches.ts'
import { addressOf, type Reach } from './reach.ts'

/** A followed broker and the objects used to reach it. */
export interface FollowedBroker {
  readonly client: BrokerClient
  readonly port: BrokerPort & { close(): void }
  readonly remote: Remote
  /** Aborts its pending requests. */
  readonly abort: AbortController
}

export interface BrokerRegistrarPorts {
  readonly host: Pick<HostBase<unknown>, 'isOwn'>
  readonly reach: Reach
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  readonly add: (address: string, origin: BrokerOrigin, more: Partial<RemoteFacts>) => BrokerRow
  readonly open: (row: BrokerRow) => FollowedBroker
  readonly close: (b: number) => Promise<void>
  /** Removes a broker: its entries now, its subscriptions there when it can be reached. */
  readonly drop: (row: BrokerRow) => Promise<void>
}

export function createBrokerRegistrar(ports: BrokerRegistrarPorts) {
  const { host, reach, brokers, catalogue, add, open, close, drop } = ports
  const registering = new Set<string>()

  /** @throws GatewayError if the broker is known, is this gateway, or exceeds the limit. */
  function checkNew(address: string): void {
    if (host.isOwn(address)) throw alreadyExists('the local MDR is registered already')
    const known = brokers.byHost(address)
    if ((known !== undefined && !isLeaving(known)) || registering.has(canonicalAddress(address))) {
      const as = known === undefined || known.host === address ? '' : `, as ${known.host}`
      throw alreadyExists(`${address} is registered already${as}`)
    }
    if (brokers.all().length + registering.size > limits.indexBrokersMax.value)
      throw badRequestData(`no more than ${limits.indexBrokersMax.value} brokers can be registered`, 'host')
    if (reach.callbackBase() === undefined)
      throw new GatewayError(
        'peer.unavailable',
        'this gateway has no address for notifications; set indexing.callbackUrl',
      )
  }

  async function checkAnswers(client: BrokerClient): Promise<void> {
    const path = `/ngsi-ld/v1/entities?type=${encodeURIComponent(typeOf('stream')!)}&limit=1`
    const answer = await client.request(
      { method: 'GET', path, headers: { Accept: 'application/json' } },
      [200],
    )
    if ('trouble' in answer) throw refusalOf(client.address, answer.trouble)
    if (listIn(answer.value.text) === undefined)
      throw refusalOf(client.address, { kind: 'refused', reason: 'the response is not a list of entities' })
  }

  /**
   * Replaces a row that is being removed. Returns the ids of subscriptions that still exist at the broker.
   */
  async function takeOver(address: string): Promise<readonly string[]> {
    const before = brokers.byHost(address)
    if (before === undefined) return []
    await catalogue.removeAll(before.b)
    brokers.remove(before.b)
    return Object.values(factsOf(before).subscriptions ?? {})
  }

  /** Subscribes and starts to follow the broker. Undoes everything if that fails. */
  async function follow(row: BrokerRow, one: FollowedBroker, before: readonly string[]): Promise<void> {
    const left = await unsubscribeAll(before, one.client)
    const trouble = await one.remote.subscribeAll()
    if (trouble === undefined) return one.remote.start()
    const now = brokers.get(row.b) ?? row
    const made = Object.values(factsOf(now).subscriptions ?? {})
    const remaining = await unsubscribeAll([...left, ...made], one.client)
    if (remaining.length > 0) {
      const subscriptions = Object.fromEntries(remaining.map((id) => [id, id]))
      brokers.set(row.b, { facts: { ...now.facts, subscriptions } })
      await drop(row)
    } else {
      await close(row.b)
      await catalogue.removeAll(row.b)
      brokers.remove(row.b)
    }
    throw refusalOf(row.host, trouble)
  }

  return Object.freeze({
    isRegistering: (address: string): boolean => registering.has(canonicalAddress(address)),

    /**
     * Registers a broker. Returns after it answered and all subscriptions were created.
     * @throws ngsi-ld.already-exists, ngsi-ld.bad-request-data, or peer.* with what the broker did.
     */
    async register(given: string, tenant?: string): Promise<BrokerRow> {
      const address = addressOf(given, 'host')
      checkNew(address)
      registering.add(canonicalAddress(address))
      try {
        const port = reach.open(address, tenant)
        try {
          await checkAnswers(reach.client(port))
        } finally {
          port.close()
        }
        const left = await takeOver(address)
        const row = add(address, 'registered', tenant === undefined ? {} : { tenant })
        const one = open(row)
        await follow(row, one, left)
        return brokers.get(row.b)!
      } finally {
        registering.delete(canonicalAddress(address))
      }
    },
  })
}

/** Returns the subscriptions that remain. */
async function unsubscribeAll(ids: readonly string[], client: BrokerClient): Promise<readonly string[]> {
  const remaining: string[] = []
  for (const id of ids) if ((await unsubscribe(id, client)) !== undefined) remaining.push(id)
  return remaining
}

function refusalOf(address: string, { kind, reason, isTimeout = false }: RequestTrouble): GatewayError {
  if (kind === 'refused')
    return new GatewayError('peer.refused', `${address} is not a broker that can be indexed: ${reason}`)
  return new GatewayError(
    isTimeout ? 'peer.timeout' : 'peer.unavailable',
    `${address} cannot be reached: ${reason}`,
  )
}
