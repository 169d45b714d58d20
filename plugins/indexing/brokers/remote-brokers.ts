/**
 * All registered brokers: those of the settings, those registered by clients, and those learnt from registrations of context
 * sources. Who is registered stands in the index's file, so that a restart goes on where it was; each runs by itself, and none waits
 * for another.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerPort, Host } from '#contract'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Items } from '#plugins/indexing/entries/broker-messages.ts'
import {
  type BrokerRow,
  type Brokers,
  type Origin,
  ownBroker,
} from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { indexedTypes } from '#plugins/indexing/entries/entity-kinds.ts'
import { placeOf } from '#plugins/indexing/entries/same-broker.ts'
import { readSources } from './broker-reading.ts'
import { createRegistrar, type Running } from './broker-registrar.ts'
import { createLeaving, isLeaving } from './broker-removal.ts'
import { complaintsOf, seenWarningsOf, warningsOf } from './broker-warnings.ts'
import { createRemote, factsOf, type RemoteFacts } from './followed-broker.ts'
import { addressOf, createReach, type Reach, type ReachSettings, signatureOf } from './reach.ts'

export interface RemotesSettings extends ReachSettings {
  readonly learn: boolean
}

export interface RemotesPorts {
  readonly host: Host<RemotesSettings, 'mdr' | 'remote'>
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  /** Takes errors of what nobody waits for. */
  readonly tell: (during: string) => (error: unknown) => void
}

const isRemote = ({ b }: BrokerRow): boolean => b !== ownBroker

export type Remotes = ReturnType<typeof createRemotes>

export function createRemotes({ host, brokers, catalogue, tell }: RemotesPorts) {
  const { settings, clock, log, signal } = host
  const reach = createReach(host)
  const running = new Map<number, Running>()
  let [leaving, starting]: (NodeJS.Timeout | undefined)[] = []

  function open(row: BrokerRow): Running {
    const { secret, tenant: given } = factsOf(row)
    // That of a broker of the settings is theirs to say.
    const tenant = row.origin === 'declared' ? reach.tenantOf(row.host) : given
    if (tenant !== given) brokers.set(row.b, { facts: { ...row.facts, tenant } })
    const port = reach.open(row.host, tenant)
    const abort = new AbortController()
    const ended = AbortSignal.any([signal, abort.signal])
    const asking = reach.asking(port, ended)
    const learn =
      settings.learn && row.origin !== 'learnt'
        ? (found: readonly string[]) => learnt(row.key, found)
        : undefined
    const callback = reach.callback(row.key, secret)
    const notifying = reach.notifying(row.host)
    const remote = createRemote({
      ...{ row, asking, brokers, catalogue, clock, log, tell, callback, notifying, learn },
      signal: ended,
    })
    const one = { asking, port, remote, abort }
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

  function add(address: string, origin: Origin, more: Partial<RemoteFacts> = {}): BrokerRow {
    const facts: RemoteFacts = { secret: randomBytes(24).toString('hex'), ...more }
    return brokers.add(address, origin, facts as never)
  }

  const standing = (): BrokerRow[] => brokers.all().filter((row) => !isLeaving(row))

  /** Begins to follow a broker that cannot answer before it is asked. */
  function begin(row: BrokerRow): void {
    try {
      // Whatever it was before, that is to be seen.
      brokers.set(row.b, { state: 'new' })
      open(row).remote.start()
    } catch (error) {
      brokers.set(row.b, { state: 'refused', facts: { ...row.facts, reason: (error as Error).message } })
      log.warn('indexing.broker-down', { broker: row.host, reason: (error as Error).message })
    }
  }

  /** Forgets a broker: its entries now, what is left of it there when it can be reached. */
  async function drop(row: BrokerRow): Promise<void> {
    await close(row.b)
    const now = brokers.get(row.b) ?? row
    brokers.set(row.b, { state: 'leaving', load: null, facts: { ...now.facts, leftAt: clock.now() } })
    await catalogue.removeAll(row.b)
    lookAround()
  }

  const lookAtLeaving = createLeaving({ brokers, catalogue, reach, clock, log, signal, tell })
  function lookAround(): void {
    void lookAtLeaving().then(beginDeclared).catch(tell('following brokers of the settings'))
  }

  /** Begins to follow brokers of the settings. One that still leaves, since they named it no more, is begun when it has left. */
  function beginDeclared(): void {
    if (leaving === undefined) return
    for (const address of reach.declared()) {
      const isKnown = brokers.byHost(address) !== undefined || registrar.isRegistering(address)
      if (!host.isOwn(address) && !isKnown) begin(add(address, 'declared'))
    }
  }

  /** Brokers that registrations name are followed as long as they are named. */
  function learnt(from: string, addresses: readonly string[]): void {
    const named = new Set(
      addresses.flatMap((one) => (isAddress(one) && !host.isOwn(one) ? [addressOf(one, 'endpoint')] : [])),
    )
    const places = new Set([...named].map(placeOf))
    for (const row of standing().filter(({ origin }) => origin === 'learnt')) {
      const others = (factsOf(row).learntFrom ?? []).filter((key) => key !== from)
      const learntFrom = places.has(placeOf(row.host)) ? [...others, from] : others
      brokers.set(row.b, { facts: { ...row.facts, learntFrom } })
      if (learntFrom.length === 0) void drop(row).catch(tell(`forgetting ${row.host}`))
    }
    for (const address of named) {
      if (brokers.byHost(address) !== undefined || registrar.isRegistering(address)) continue
      if (brokers.all().length > limits.indexBrokersMax.value) return
      log.info('indexing.broker-learnt', { broker: address })
      begin(add(address, 'learnt', { learntFrom: [from] }))
    }
  }

  /** What the own broker's registrations name. */
  async function learnFromOwn(): Promise<void> {
    const own = brokers.get(ownBroker)
    if (settings.learn && own !== undefined)
      learnt(own.key, await readSources([...indexedTypes], reach.asking(host.mdr)))
  }

  const registrar = createRegistrar({ host, reach, brokers, catalogue, add, open, close })

  return Object.freeze({
    /** Goes on with all that is registered, when this gateway can be reached. */
    start(): void {
      if (!reach.isReached()) {
        starting = setTimeout(() => this.start(), limits.indexStartMs.value).unref()
        return
      }
      for (const row of standing().filter(isRemote)) {
        const isUnwanted =
          row.origin === 'declared'
            ? reach.declaredAs(row.host) === undefined
            : row.origin === 'learnt' && !settings.learn
        if (isUnwanted) void drop(row).catch(tell(`forgetting ${row.host}`))
        else begin(respelt(row, brokers, reach))
      }
      leaving ??= setInterval(lookAround, limits.indexBrokerCheckMs.value).unref()
      beginDeclared()
      lookAround()
      void learnFromOwn().catch(tell('learning brokers'))
    },

    register: registrar.register,

    /** @throws ngsi-ld.not-found; ngsi-ld.conflict for one that the settings name, and for the gateway's own. */
    async remove(key: string): Promise<void> {
      const row = brokers.byKey(key)
      if (row === undefined || isLeaving(row)) throw notFound(`there is no broker ${key}`)
      if (row.origin === 'own') throw new GatewayError('ngsi-ld.conflict', 'the local MDR is always indexed')
      if (row.origin === 'declared')
        throw new GatewayError('ngsi-ld.conflict', `${row.host} is in indexing.brokers of the settings`)
      await drop(row)
    },

    /** Those that are followed, or to be. */
    all: standing,

    /**
     * Takes in a notification. @throws http.unauthorized, ngsi-ld.not-found, http.busy
     * @param sign what follows the key in the path.
     */
    async notified(
      purpose: string,
      { key, sign }: { key: string; sign: string },
      items: Items,
      stamp: number,
    ): Promise<void> {
      const row = brokers.byKey(key)
      const secret = row === undefined ? undefined : factsOf(row).secret
      if (row === undefined || secret === undefined) throw notFound('nobody notifies here')
      checkSign(sign, signatureOf(secret, purpose))
      const one = running.get(row.b)
      if (one === undefined) throw notFound(`${row.host} is not followed any more`)
      if (!(await one.remote.take(items, stamp)))
        throw new GatewayError('http.busy', 'too many notifications wait', { retryAfterSeconds: 1 })
    },

    /** Reads all brokers again. */
    async crawl(): Promise<void> {
      for (const { remote } of running.values()) remote.crawl()
      await learnFromOwn()
    },

    /** Ports of those that can be asked now. */
    asked: (): BrokerPort[] =>
      [...running].flatMap(([b, one]) =>
        ['following', 'loading', 'new'].includes(brokers.get(b)?.state ?? '') ? [telling(one)] : [],
      ),

    warnings: () => warningsOf(standing()),
    /** Of brokers that tell of observations. */
    seenWarnings: () =>
      seenWarningsOf(standing().filter(({ b }) => catalogue.countsOf(b)['observation'] !== 0)),
    complaints: () => complaintsOf(standing()),
    counts: (b: number) => running.get(b)?.remote.counts(),

    /** Leaves off, so that the index can be emptied. */
    async stop(): Promise<void> {
      clearTimeout(starting)
      clearInterval(leaving)
      leaving = undefined
      await Promise.all([...running.keys()].map(close))
    },
  })
}

/** The port of a broker, where whoever cannot reach it tells those that follow it. */
const telling = ({ port, remote }: Running): BrokerPort => ({
  address: port.address,
  async exchange(request) {
    const answer = await port.exchange(request)
    const isLost = 'failure' in answer && answer.failure === 'unreachable'
    if (isLost && request.signal?.aborted !== true) remote.lost(answer.reason)
    return answer
  },
})

/** A broker of the settings has the address that they give it now. */
function respelt(row: BrokerRow, brokers: Brokers, reach: Reach): BrokerRow {
  const host = row.origin === 'declared' ? reach.declaredAs(row.host) : undefined
  if (host === undefined || brokers.all().some((one) => one.host === host)) return row
  brokers.set(row.b, { host })
  return brokers.get(row.b)!
}

/** @throws http.unauthorized */
function checkSign(sign: string, wanted: string): void {
  const [given, expected] = [Buffer.from(sign), Buffer.from(wanted)]
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new GatewayError('http.unauthorized', 'the callback does not carry the secret of its subscription')
}

const isAddress = (url: string): boolean => URL.canParse(url) && /^https?:/.test(url)
