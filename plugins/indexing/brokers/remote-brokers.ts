/**
 * Manages all registered brokers: those in the settings, those registered by clients, and those learnt from
 * context source registrations. Rows in the index's file let a restart resume. Brokers run independently.
 */
import { randomBytes } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { readSources } from '#client/requests/broker-reading.ts'
import { canonicalAddress } from '#client/requests/same-broker.ts'
import { checkSignature, signatureOf } from '#client/subscriptions/callback-signature.ts'
import type { BrokerPort, Host } from '#contract'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import {
  type BrokerOrigin,
  type BrokerRow,
  type Brokers,
  ownBroker,
} from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { indexedTypes } from '#plugins/indexing/entries/entity-kinds.ts'
import type { SentItems } from '#plugins/indexing/entries/sent-entities.ts'
import { createBrokerRegistrar, type FollowedBroker } from './broker-registrar.ts'
import { createRemovals, isLeaving } from './broker-removal.ts'
import { complaintsOf, seenWarningsOf, warningsOf } from './broker-warnings.ts'
import { createRemote, factsOf, type RemoteFacts } from './followed-broker.ts'
import { addressOf, createReach, type Reach, type ReachSettings } from './reach.ts'

export interface RemotesSettings extends ReachSettings {
  readonly learn: boolean
}

export interface RemotesPorts {
  readonly host: Host<RemotesSettings, 'mdr' | 'remote'>
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  /** Handles errors of background work. */
  readonly reportError: (during: string) => (error: unknown) => void
}

const isRemote = ({ b }: BrokerRow): boolean => b !== ownBroker

export type Remotes = ReturnType<typeof createRemotes>

export function createRemotes({ host, brokers, catalogue, reportError }: RemotesPorts) {
  const { settings, clock, log, signal } = host
  const reach = createReach(host)
  const running = new Map<number, FollowedBroker>()
  let removalTimer: NodeJS.Timeout | undefined
  let startTimer: NodeJS.Timeout | undefined

  function open(row: BrokerRow): FollowedBroker {
    const { secret, tenant: given } = factsOf(row)
    // For a broker in the settings, the settings decide the tenant.
    const tenant = row.origin === 'declared' ? reach.tenantOf(row.host) : given
    if (tenant !== given) brokers.set(row.b, { facts: { ...row.facts, tenant } })
    const port = reach.open(row.host, tenant)
    const abort = new AbortController()
    const ended = AbortSignal.any([signal, abort.signal])
    const client = reach.client(port, ended)
    const learn =
      settings.learn && row.origin !== 'learnt'
        ? (found: readonly string[]) => updateLearnt(row.key, found)
        : undefined
    const callback = reach.callback(row.key, secret)
    const remote = createRemote({
      row,
      client,
      brokers,
      catalogue,
      clock,
      log,
      base: reach.callbackBase,
      callback,
      learn,
      signal: ended,
    })
    const one = { client, port, remote, abort }
    running.set(row.b, one)
    return one
  }

  async function close(b: number): Promise<void> {
    const one = running.get(b)
    running.delete(b)
    one?.abort.abort()
    await one?.remote.close()
    one?.port.close()
  }

  function add(address: string, origin: BrokerOrigin, more: Partial<RemoteFacts> = {}): BrokerRow {
    const facts: RemoteFacts = { secret: randomBytes(24).toString('hex'), ...more }
    return brokers.add(address, origin, facts as never)
  }

  const registered = (): BrokerRow[] => brokers.all().filter((row) => !isLeaving(row))

  /** Starts to follow a broker without requiring an answer first. */
  function begin(row: BrokerRow): void {
    try {
      // Discard the previous state; the first check decides.
      brokers.set(row.b, { state: 'new' })
      open(row).remote.start()
    } catch (error) {
      brokers.set(row.b, { state: 'refused', facts: { ...row.facts, reason: (error as Error).message } })
      log.warn('plugin.broker-down', {
        plugin: 'indexing',
        broker: row.host,
        reason: (error as Error).message,
      })
    }
  }

  /** Removes a broker: its entries now, its subscriptions there when it can be reached. */
  async function drop(row: BrokerRow): Promise<void> {
    await close(row.b)
    const now = brokers.get(row.b) ?? row
    brokers.set(row.b, { state: 'leaving', load: null, facts: { ...now.facts, leftAt: clock.now() } })
    await catalogue.removeAll(row.b)
    checkRemovals()
  }

  const processRemovals = createRemovals({ brokers, catalogue, reach, clock, log, signal, reportError })
  function checkRemovals(): void {
    void processRemovals().then(beginDeclared).catch(reportError('following brokers in the settings'))
  }

  /** Starts to follow brokers in the settings. A broker still being removed starts after its removal. */
  function beginDeclared(): void {
    if (removalTimer === undefined) return
    for (const address of reach.declared()) {
      const isKnown = brokers.byHost(address) !== undefined || registrar.isRegistering(address)
      if (!host.isOwn(address) && !isKnown) begin(add(address, 'declared'))
    }
  }

  /** Follows brokers for as long as a registration names them. */
  function updateLearnt(from: string, addresses: readonly string[]): void {
    const named = new Set(
      addresses.flatMap((one) => (isAddress(one) && !host.isOwn(one) ? [addressOf(one, 'endpoint')] : [])),
    )
    const places = new Set([...named].map(canonicalAddress))
    for (const row of registered().filter(({ origin }) => origin === 'learnt')) {
      const others = (factsOf(row).learntFrom ?? []).filter((key) => key !== from)
      const learntFrom = places.has(canonicalAddress(row.host)) ? [...others, from] : others
      brokers.set(row.b, { facts: { ...row.facts, learntFrom } })
      if (learntFrom.length === 0) void drop(row).catch(reportError(`removing ${row.host}`))
    }
    for (const address of named) {
      if (brokers.byHost(address) !== undefined || registrar.isRegistering(address)) continue
      if (brokers.all().length > limits.indexBrokersMax.value) return
      log.info('indexing.broker-learnt', { broker: address })
      begin(add(address, 'learnt', { learntFrom: [from] }))
    }
  }

  /** Follows the brokers that the own broker's registrations name. */
  async function learnFromOwn(): Promise<void> {
    const own = brokers.get(ownBroker)
    if (settings.learn && own !== undefined)
      updateLearnt(own.key, await readSources([...indexedTypes], reach.client(host.mdr)))
  }

  const registrar = createBrokerRegistrar({ host, reach, brokers, catalogue, add, open, close, drop })

  /** Resumes all registered brokers once this gateway has an address for notifications. */
  function start(): void {
    if (reach.callbackBase() === undefined) {
      startTimer = setTimeout(start, limits.indexStartMs.value).unref()
      return
    }
    for (const row of registered().filter(isRemote)) {
      const isUnwanted =
        row.origin === 'declared'
          ? reach.declaredAs(row.host) === undefined
          : row.origin === 'learnt' && !settings.learn
      if (isUnwanted) void drop(row).catch(reportError(`removing ${row.host}`))
      else begin(withDeclaredAddress(row, brokers, reach))
    }
    removalTimer ??= setInterval(checkRemovals, limits.followCheckMs.value).unref()
    beginDeclared()
    checkRemovals()
    void learnFromOwn().catch(reportError('learning brokers from registrations'))
  }

  return Object.freeze({
    start,
    register: registrar.register,

    /** @throws ngsi-ld.not-found; ngsi-ld.conflict for brokers in the settings and for the gateway's own. */
    async remove(key: string): Promise<void> {
      const row = brokers.byKey(key)
      if (row === undefined || isLeaving(row)) throw notFound(`no broker with id ${key}`)
      if (row.origin === 'own') throw new GatewayError('ngsi-ld.conflict', 'the local MDR is always indexed')
      if (row.origin === 'declared')
        throw new GatewayError(
          'ngsi-ld.conflict',
          `${row.host} is declared in indexing.brokers of the settings`,
        )
      await drop(row)
    },

    /** All registered brokers that are not being removed. */
    all: registered,

    /**
     * Applies a notification. @throws http.unauthorized, ngsi-ld.not-found, http.busy
     * @param sign the text after the key in the path.
     */
    async notified(
      purpose: string,
      { key, sign }: { key: string; sign: string },
      items: SentItems,
      stamp: number,
    ): Promise<void> {
      const row = brokers.byKey(key)
      const secret = row === undefined ? undefined : factsOf(row).secret
      if (row === undefined || secret === undefined) throw notFound('no subscription uses this callback')
      checkSignature(sign, signatureOf(secret, purpose))
      const one = running.get(row.b)
      if (one === undefined) throw notFound(`${row.host} is no longer followed`)
      if (!(await one.remote.take(items, stamp)))
        throw new GatewayError('http.busy', 'too many notifications are queued', { retryAfterSeconds: 1 })
    },

    /** Starts a full read of all brokers. */
    async crawl(): Promise<void> {
      for (const { remote } of running.values()) remote.readAnew()
      await learnFromOwn()
    },

    /** Ports of the brokers that are not down, refused or being removed. */
    reachable: (): BrokerPort[] =>
      [...running].flatMap(([b, one]) =>
        ['following', 'loading', 'new'].includes(brokers.get(b)?.state ?? '') ? [reportingPort(one)] : [],
      ),

    warnings: () => warningsOf(registered()),
    /** Warnings only for brokers with observations. */
    seenWarnings: () =>
      seenWarningsOf(registered().filter(({ b }) => catalogue.countsOf(b)['observation'] !== 0)),
    complaints: () => complaintsOf(registered()),
    counts: (b: number) => running.get(b)?.remote.counts(),

    /** Stops, so that the index can be emptied. */
    async stop(): Promise<void> {
      clearTimeout(startTimer)
      clearInterval(removalTimer)
      removalTimer = undefined
      await Promise.all([...running.keys()].map(close))
    },
  })
}

/** A port that marks the broker as down if a request cannot reach it. */
const reportingPort = ({ port, remote }: FollowedBroker): BrokerPort => ({
  address: port.address,
  async exchange(request) {
    const answer = await port.exchange(request)
    const isLost = 'failure' in answer && answer.failure === 'unreachable'
    if (isLost && request.signal?.aborted !== true) remote.reportUnreachable(answer.reason)
    return answer
  },
})

/** Updates the row's address to the one in the settings. */
function withDeclaredAddress(row: BrokerRow, brokers: Brokers, reach: Reach): BrokerRow {
  const host = row.origin === 'declared' ? reach.declaredAs(row.host) : undefined
  if (host === undefined || brokers.all().some((one) => one.host === host)) return row
  brokers.set(row.b, { host })
  return brokers.get(row.b)!
}

const isAddress = (url: string): boolean => URL.canParse(url) && /^https?:/.test(url)
