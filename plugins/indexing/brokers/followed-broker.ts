/**
 * Follows one registered broker: creates and checks subscriptions, reads it in full, applies notifications.
 * If a broker is unreachable or its answers are unusable, its entries remain and count as stale until the
 * next full read. A full read runs whenever notifications may have been missed.
 */

import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type { BrokerItems } from '#plugins/indexing/entries/broker-messages.ts'
import type { BrokerRow, Brokers } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { indexedTypes } from '#plugins/indexing/entries/entity-kinds.ts'
import { readSources } from './broker-reading.ts'
import type { BrokerClient, RequestTrouble } from './broker-requests.ts'
import { type Crawled, crawl } from './crawl.ts'
import { subscribe, subscriptionStatus, unsubscribe } from './remote-subscriptions.ts'
import { type Notifying, type Silence, silenceOf } from './silence.ts'
import { watched } from './watched.ts'

/** Stored facts about a registered broker besides its address. */
export interface RemoteFacts extends Notifying {
  readonly tenant?: string
  /** Key that signs callback URLs. */
  readonly secret: string
  /** Subscription ids by purpose. */
  readonly subscriptions?: Readonly<Record<string, string>>
  readonly tellsDeletions?: boolean
  /** Why the broker is down or refused. */
  readonly reason?: string
  readonly lastCrawl?: Crawled
  /** When its entries were last known to be current, ISO 8601. */
  readonly heardAt?: string
  /** Set while the broker cannot notify this gateway. */
  readonly silence?: Silence | undefined
  /** Keys of the brokers whose registrations name this one. */
  readonly learntFrom?: readonly string[]
  /** When its removal began, ms. */
  readonly leftAt?: number
}

export const factsOf = ({ facts }: BrokerRow): RemoteFacts => facts as unknown as RemoteFacts

export interface RemotePorts extends ClockAndLog {
  readonly row: BrokerRow
  readonly client: BrokerClient
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  /** Handles errors of background work. */
  readonly reportError: (during: string) => (error: unknown) => void
  /** Callback address for a purpose. Undefined while this gateway has no address that brokers can reach. */
  readonly callback: (purpose: string) => string | undefined
  /** Base address for notifications, and whether the broker's host cannot reach it. */
  readonly notifying: () => { readonly base: string; readonly isHidden: boolean }
  /** Receives broker addresses found in its registrations; undefined if such brokers are not followed. */
  readonly learn?: ((addresses: readonly string[]) => void) | undefined
  readonly signal: AbortSignal
}

export type Remote = ReturnType<typeof createRemote>

export function createRemote(ports: RemotePorts) {
  const { client, brokers, catalogue, clock, log, callback, signal } = ports
  const { b, host } = ports.row
  const purposes = Object.keys(watched)
  /** Last notification per entity. Pages requested before it are older. */
  const lastNotified = new Map<string, { readonly at: number; readonly stamp: number }>()
  const counts = { notifications: 0, unreadable: 0 }
  let isBehind = true
  let crawledAt = Number.NEGATIVE_INFINITY
  let checks = 0
  let waiting = 0
  /** Runs index writes one after the other. */
  const inTurn = createSemaphore()
  let wake: () => void = () => {}
  let isClosed = false

  const facts = (): RemoteFacts => factsOf(brokers.get(b) ?? ports.row)
  const note = (change: Partial<RemoteFacts>): void => brokers.set(b, { facts: { ...facts(), ...change } })

  async function make(purpose: string, uri: string): Promise<RequestTrouble | undefined> {
    const made = await subscribe(purpose, uri, client)
    if ('trouble' in made) return made.trouble
    const { id, tellsDeletions } = made.value
    note({ subscriptions: { ...facts().subscriptions, [purpose]: id }, tellsDeletions })
    isBehind = true
    return undefined
  }

  /** Creates a subscription again if it is missing or differs. */
  async function ensure(purpose: string): Promise<RequestTrouble | undefined> {
    const uri = callback(purpose)
    if (uri === undefined) return { kind: 'down', reason: 'this gateway has no address for notifications' }
    const id = facts().subscriptions?.[purpose]
    if (id === undefined) return make(purpose, uri)
    const status = await subscriptionStatus(id, uri, client)
    if ('trouble' in status) return status.trouble
    const { kind, failedAt } = status.value
    if (kind === 'as expected') {
      const { undelivered = {}, madeGood = {} } = facts()
      const { [purpose]: known, ...others } = undelivered
      if (known !== failedAt)
        note({ undelivered: failedAt === undefined ? others : { ...others, [purpose]: failedAt } })
      const isMissed = failedAt !== undefined && failedAt !== madeGood[purpose]
      if (isMissed && clock.monotonic() - crawledAt > limits.indexMissedMs.value) isBehind = true
      return undefined
    }
    if (kind === 'different') await unsubscribe(id, client)
    else log.warn('indexing.subscription-gone', { broker: host, subscription: id })
    return make(purpose, uri)
  }

  /** Checks one subscription per call, in rotation; all of them if notifications may have been missed. */
  async function checkSubscriptions(): Promise<RequestTrouble | undefined> {
    if (!isBehind) {
      const trouble = await ensure(purposes[checks++ % purposes.length]!)
      if (trouble !== undefined || !isBehind) return trouble
    }
    for (const purpose of purposes) {
      const trouble = await ensure(purpose)
      if (trouble !== undefined) return trouble
    }
    return undefined
  }

  async function read(): Promise<RequestTrouble | undefined> {
    isBehind = false
    const { undelivered = {} } = facts()
    const outcome = await crawl({ b, client, brokers, catalogue, clock, inTurn, isNotifiedSince })
    if ('trouble' in outcome) return outcome.trouble
    crawledAt = clock.monotonic()
    note({ lastCrawl: outcome.crawled, madeGood: undelivered })
    log.info('indexing.read', { broker: host, ...outcome.crawled })
    ports.learn?.(await readSources([...indexedTypes], client))
    return undefined
  }

  const isNotifiedSince = (id: string, at: number): boolean =>
    (lastNotified.get(id)?.at ?? Number.NEGATIVE_INFINITY) >= at

  /** Checks the broker once. Reads it in full if necessary. */
  async function check(): Promise<boolean> {
    const before = brokers.get(b)?.state
    const checkTrouble = await checkSubscriptions()
    const isRead = checkTrouble === undefined && isBehind
    const trouble = isRead ? await read() : checkTrouble
    if (isClosed || signal.aborted) return false
    if (trouble !== undefined) return markFailed(trouble)
    follow(isRead)
    if (before === 'down' || before === 'refused') log.info('indexing.broker-up', { broker: host })
    return true
  }

  /** The broker answers. Its entries are current, unless it cannot notify this gateway. */
  function follow(isRead: boolean): void {
    const { reason: _, silence: before, ...rest } = facts()
    const { base, isHidden } = ports.notifying()
    // If notifications arrive, the address is reachable, whatever it looks like.
    const silence = silenceOf(rest, { base, isHidden: isHidden && counts.notifications === 0 })
    const current =
      silence?.isAged === true && !isRead ? {} : { heardAt: new Date(clock.now()).toISOString() }
    brokers.set(b, { state: 'following', facts: { ...rest, ...current, silence } })
    if (silence !== undefined && before === undefined)
      log.warn('indexing.broker-silent', { broker: host, reason: silence.reason })
  }

  /** Records that the broker cannot be reached or used. */
  function markFailed({ kind, reason }: RequestTrouble): false {
    const before = brokers.get(b)?.state
    isBehind = true
    brokers.set(b, { state: kind })
    note({ reason })
    if (before !== kind) log.warn('indexing.broker-down', { broker: host, reason })
    return false
  }

  /** Records a local error, such as a full disk; the next check may succeed. */
  function fail(error: Error): void {
    isBehind = true
    ports.reportError(`following ${host}`)(error)
    try {
      brokers.set(b, { state: 'refused' })
      note({ reason: error.message })
    } catch {
      // The row cannot be written either.
    }
  }

  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref()
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })

  /** Runs until closed. */
  async function run(): Promise<void> {
    while (!isClosed && !signal.aborted) {
      try {
        await check()
      } catch (error) {
        if (isClosed || signal.aborted) break
        fail(error as Error)
      }
      if (!isClosed) await pause(limits.indexBrokerCheckMs.value)
    }
  }

  const running = { promise: undefined as Promise<void> | undefined }
  return Object.freeze({
    b,
    start(): void {
      running.promise ??= run()
    },
    /** Creates the missing subscriptions now. */
    async subscribeAll(): Promise<RequestTrouble | undefined> {
      return checkSubscriptions()
    },
    /** Another request could not reach the broker. */
    reportUnreachable(reason: string): void {
      if (isClosed || brokers.get(b)?.state === 'down') return
      markFailed({ kind: 'down', reason })
      wake()
    },
    /** Starts a full read soon. */
    crawl(): void {
      isBehind = true
      wake()
    },
    /**
     * Applies a notification, unless a newer one changed the same entity. Returns false if too many are
     * queued.
     * @param stamp when the broker sent it, ms by the broker's clock.
     */
    async take({ entities, deleted, unreadable }: BrokerItems, stamp: number): Promise<boolean> {
      if (waiting >= limits.indexNotificationsMax.value) return false
      waiting++
      counts.notifications++
      counts.unreadable += unreadable.length
      try {
        await inTurn(async () => {
          const isNew = (id: string): boolean => {
            const last = lastNotified.get(id)
            // Past this interval an older stamp means that the broker's clock was set back.
            const isRecent = last !== undefined && clock.monotonic() - last.at < limits.indexReorderMs.value
            if (isRecent && last.stamp > stamp) return false
            if (lastNotified.size >= limits.indexNotifiedMax.value)
              lastNotified.delete(lastNotified.keys().next().value!)
            lastNotified.delete(id)
            lastNotified.set(id, { at: clock.monotonic(), stamp })
            return true
          }
          const changed = entities.filter(({ id }) => isNew(id))
          await catalogue.take(b, { changed, deleted: deleted.filter(isNew) })
        })
      } finally {
        waiting--
      }
      // The broker is reachable again.
      if (brokers.get(b)?.state === 'down') wake()
      return true
    },
    counts: () => ({ ...counts }),
    /** Stops. Resolves when no write is in progress. */
    async close(): Promise<void> {
      isClosed = true
      wake()
      await running.promise?.catch(() => undefined)
      await inTurn(async () => undefined)
    },
  })
}
