/**
 * The registration of a broker by a client: it is there, it is not ours, it answers as a broker does, and it takes our subscriptions.
 * Where one of these fails the client is told which, and nothing is left behind, here or there.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerPort, HostBase } from '#contract'
import { alreadyExists, badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { listIn } from '#plugins/indexing/entries/broker-messages.ts'
import type { BrokerRow, Brokers, Origin } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { placeOf } from '#plugins/indexing/entries/same-broker.ts'
import { isLeaving } from './broker-removal.ts'
import type { Asking, Trouble } from './broker-requests.ts'
import { factsOf, type Remote, type RemoteFacts } from './followed-broker.ts'
import { addressOf, type Reach } from './reach.ts'
import { unsubscribe } from './remote-subscriptions.ts'
import { watched } from './watched.ts'

/** A broker that runs, with what it is reached by. */
export interface Running {
  readonly asking: Asking
  readonly port: BrokerPort & { close(): void }
  readonly remote: Remote
  /** Ends what it waits for. */
  readonly abort: AbortController
}

export interface RegistrarPorts {
  readonly host: Pick<HostBase<unknown>, 'isOwn'>
  readonly reach: Reach
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  readonly add: (address: string, origin: Origin, more: Partial<RemoteFacts>) => BrokerRow
  readonly open: (row: BrokerRow) => Running
  readonly close: (b: number) => Promise<void>
}

export function createRegistrar(ports: RegistrarPorts) {
  const { host, reach, brokers, catalogue, add, open, close } = ports
  const registering = new Set<string>()

  /** @throws GatewayError where it is known, ours, or one too many. */
  function checkNew(address: string): void {
    if (host.isOwn(address)) throw alreadyExists('the local MDR is registered already')
    const known = brokers.byHost(address)
    if ((known !== undefined && !isLeaving(known)) || registering.has(placeOf(address))) {
      const as = known === undefined || known.host === address ? '' : `, as ${known.host}`
      throw alreadyExists(`${address} is registered already${as}`)
    }
    if (brokers.all().length + registering.size > limits.indexBrokersMax.value)
      throw badRequestData(`no more than ${limits.indexBrokersMax.value} brokers can be registered`, 'host')
    if (!reach.isReached())
      throw new GatewayError(
        'peer.unavailable',
        'this gateway has no address to be notified at; set indexing.callbackUrl',
      )
  }

  async function checkAnswers(asking: Asking): Promise<void> {
    const path = `/ngsi-ld/v1/entities?type=${encodeURIComponent(watched['stream']!)}&limit=1`
    const answer = await asking.want({ method: 'GET', path, headers: { Accept: 'application/json' } }, [200])
    if ('trouble' in answer) throw refusalOf(asking.address, answer.trouble)
    if (listIn(answer.value.text) === undefined)
      throw refusalOf(asking.address, { kind: 'refused', reason: 'what it answers is no list of entities' })
  }

  /** Whom it takes the place of, where it was to be forgotten: subscriptions that are still there. */
  async function takeOver(address: string): Promise<readonly string[]> {
    const before = brokers.byHost(address)
    if (before === undefined) return []
    await catalogue.removeAll(before.b)
    brokers.remove(before.b)
    return Object.values(factsOf(before).subscriptions ?? {})
  }

  /** Subscribes and begins; leaves nothing behind where it cannot. */
  async function follow(row: BrokerRow, { asking, remote }: Running): Promise<void> {
    const trouble = await remote.subscribeAll()
    if (trouble === undefined) return remote.start()
    const made = factsOf(brokers.get(row.b) ?? row).subscriptions ?? {}
    for (const id of Object.values(made)) await unsubscribe(id, asking)
    await close(row.b)
    await catalogue.removeAll(row.b)
    brokers.remove(row.b)
    throw refusalOf(row.host, trouble)
  }

  return Object.freeze({
    isRegistering: (address: string): boolean => registering.has(placeOf(address)),

    /**
     * Registers a broker: it answers, and the subscriptions stand.
     * @throws ngsi-ld.already-exists, ngsi-ld.bad-request-data, or peer.* telling what it does instead.
     */
    async register(given: string, tenant?: string): Promise<BrokerRow> {
      const address = addressOf(given, 'host')
      checkNew(address)
      registering.add(placeOf(address))
      try {
        const port = reach.open(address, tenant)
        try {
          await checkAnswers(reach.asking(port))
        } finally {
          port.close()
        }
        const left = await takeOver(address)
        const row = add(address, 'registered', tenant === undefined ? {} : { tenant })
        const one = open(row)
        for (const id of left) await unsubscribe(id, one.asking)
        await follow(row, one)
        return brokers.get(row.b)!
      } finally {
        registering.delete(placeOf(address))
      }
    },
  })
}

function refusalOf(address: string, { kind, reason }: Trouble): GatewayError {
  if (kind === 'refused')
    return new GatewayError('peer.refused', `${address} is no broker that can be indexed: ${reason}`)
  const isLate = reason.startsWith('no answer within')
  return new GatewayError(
    isLate ? 'peer.timeout' : 'peer.unavailable',
    `${address} cannot be reached: ${reason}`,
  )
}
