/**
 * One registered broker as the index follows it: subscribed to, read whole, told of changes, and looked after. A broker that cannot be
 * reached, or answers what cannot be used, keeps its entries, which count as aged until it was read again. It is read again
 * whenever something may have been missed.
 */

import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Items } from '#plugins/indexing/entries/broker-messages.ts'
import type { BrokerRow, Brokers } from '#plugins/indexing/entries/broker-rows.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import { indexedTypes } from '#plugins/indexing/entries/entity-kinds.ts'
import { readSources } from './broker-reading.ts'
import type { Asking, Trouble } from './broker-requests.ts'
import { type Crawled, crawl } from './crawl.ts'
import { standingOf, subscribe, unsubscribe } from './remote-subscriptions.ts'
import { type Notifying, type Silence, silenceOf } from './silence.ts'
import { watched } from './watched.ts'

/** What is kept of a registered broker beside its address. */
export interface RemoteFacts extends Notifying {
  readonly tenant?: string
  /** What callbacks are signed with. */
  readonly secret: string
  /** By purpose. */
  readonly subscriptions?: Readonly<Record<string, string>>
  readonly tellsDeletions?: boolean
  /** Why it is down or refused. */
  readonly reason?: string
  readonly lastCrawl?: Crawled
  /** When its entries were last known to be right, ISO 8601. */
  readonly heardAt?: string
  /** There while it cannot notify us. */
  readonly silence?: Silence | undefined
  /** Keys of the brokers whose registrations name it. */
  readonly learntFrom?: readonly string[]
  /** When it was taken out, ms. */
  readonly leftAt?: number
}

export const factsOf = ({ facts }: BrokerRow): RemoteFacts => facts as unknown as RemoteFacts

export interface RemotePorts {
  readonly row: BrokerRow
  readonly asking: Asking
  readonly brokers: Brokers
  readonly catalogue: Catalogue
  readonly clock: Clock
  readonly log: Log
  /** Takes errors of what nobody waits for. */
  readonly tell: (during: string) => (error: unknown) => void
  /** Address of the callback for a purpose; undefined while nobody can reach us. */
  readonly callback: (purpose: string) => string | undefined
  /** Where it is to notify us, and whether nobody there reaches that. */
  readonly notifying: () => { readonly base: string; readonly isHidden: boolean }
  /** Takes addresses of brokers that its registrations name; left out where none are learnt. */
  readonly learn?: ((addresses: readonly string[]) => void) | undefined
  readonly signal: AbortSignal
}

export type Remote = ReturnType<typeof createRemote>

export function createRemote(ports: RemotePorts) {
  const { asking, brokers, catalogue, clock, log, callback, signal } = ports
  const { b, host } = ports.row
  const purposes = Object.keys(watched)
  /** When notifications told of entities: what is asked for before is older. */
  const told = new Map<string, { readonly at: number; readonly stamp: number }>()
  const counts = { notifications: 0, unreadable: 0 }
  let [isBehind, crawledAt, looked, waiting] = [true, Number.NEGATIVE_INFINITY, 0, 0]
  /** Works on the index, one after the other. */
  const inTurn = createSemaphore()
  let wake: () => void = () => {}
  let isClosed = false

  const facts = (): RemoteFacts => factsOf(brokers.get(b) ?? ports.row)
  const note = (change: Partial<RemoteFacts>): void => brokers.set(b, { facts: { ...facts(), ...change } })

  async function make(purpose: string, uri: string): Promise<Trouble | undefined> {
    const made = await subscribe(purpose, uri, asking)
    if ('trouble' in made) return made.trouble
    const { id, tellsDeletions } = made.value
    note({ subscriptions: { ...facts().subscriptions, [purpose]: id }, tellsDeletions })
    isBehind = true
    return undefined
  }

  /** Whether a subscription is there and as it should be; made again where it is not. */
  async function ensure(purpose: string): Promise<Trouble | undefined> {
    const uri = callback(purpose)
    if (uri === undefined) return { kind: 'down', reason: 'this gateway has no address to be notified at' }
    const id = facts().subscriptions?.[purpose]
    if (id === undefined) return make(purpose, uri)
    const standing = await standingOf(id, uri, asking)
    if ('trouble' in standing) return standing.trouble
    const { kind, failedAt } = standing.value
    if (kind === 'as wanted') {
      const { undelivered = {}, madeGood = {} } = facts()
      const { [purpose]: known, ...others } = undelivered
      if (known !== failedAt)
        note({ undelivered: failedAt === undefined ? others : { ...others, [purpose]: failedAt } })
      const isMissed = failedAt !== undefined && failedAt !== madeGood[purpose]
      if (isMissed && clock.monotonic() - crawledAt > limits.indexMissedMs.value) isBehind = true
      return undefined
    }
    if (kind === 'otherwise') await unsubscribe(id, asking)
    else log.warn('indexing.subscription-gone', { broker: host, subscription: id })
    return make(purpose, uri)
  }

  /** One subscription after the other; all of them where something may have been missed. */
  async function look(): Promise<Trouble | undefined> {
    if (!isBehind) {
      const trouble = await ensure(purposes[looked++ % purposes.length]!)
      if (trouble !== undefined || !isBehind) return trouble
    }
    for (const purpose of purposes) {
      const trouble = await ensure(purpose)
      if (trouble !== undefined) return trouble
    }
    return undefined
  }

  async function read(): Promise<Trouble | undefined> {
    isBehind = false
    const { undelivered = {} } = facts()
    const outcome = await crawl({ b, asking, brokers, catalogue, clock, inTurn, isToldSince })
    if ('trouble' in outcome) return outcome.trouble
    crawledAt = clock.monotonic()
    note({ lastCrawl: outcome.crawled, madeGood: undelivered })
    log.info('indexing.read', { broker: host, ...outcome.crawled })
    ports.learn?.(await readSources([...indexedTypes], asking))
    return undefined
  }

  const isToldSince = (id: string, at: number): boolean =>
    (told.get(id)?.at ?? Number.NEGATIVE_INFINITY) >= at

  /** Looks after the broker once. */
  async function turn(): Promise<boolean> {
    const before = brokers.get(b)?.state
    const unseen = await look()
    const isRead = unseen === undefined && isBehind
    const trouble = isRead ? await read() : unseen
    if (isClosed || signal.aborted) return false
    if (trouble !== undefined) return fall(trouble)
    follow(isRead)
    if (before === 'down' || before === 'refused') log.info('indexing.broker-up', { broker: host })
    return true
  }

  /** It answers; what it told is right as of now, unless it cannot tell. */
  function follow(isRead: boolean): void {
    const { reason: _, silence: before, ...rest } = facts()
    const { base, isHidden } = ports.notifying()
    // Whatever the addresses look like: what came has found its way.
    const silence = silenceOf(rest, { base, isHidden: isHidden && counts.notifications === 0 })
    const heard = silence?.isAged === true && !isRead ? {} : { heardAt: new Date(clock.now()).toISOString() }
    brokers.set(b, { state: 'following', facts: { ...rest, ...heard, silence } })
    if (silence !== undefined && before === undefined)
      log.warn('indexing.broker-silent', { broker: host, reason: silence.reason })
  }

  /** It cannot be reached, or used. */
  function fall({ kind, reason }: Trouble): false {
    const before = brokers.get(b)?.state
    isBehind = true
    brokers.set(b, { state: kind })
    note({ reason })
    if (before !== kind) log.warn('indexing.broker-down', { broker: host, reason })
    return false
  }

  /** Something went wrong here, which the next look may find mended: a disk that is full, or fails. */
  function fail(error: Error): void {
    isBehind = true
    ports.tell(`following ${host}`)(error)
    try {
      brokers.set(b, { state: 'refused' })
      note({ reason: error.message })
    } catch {
      // Then its row cannot be written either.
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

  /** Goes on until it is closed. */
  async function run(): Promise<void> {
    while (!isClosed && !signal.aborted) {
      try {
        await turn()
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
    /** Makes the subscriptions that are missing, now. */
    async subscribeAll(): Promise<Trouble | undefined> {
      return look()
    },
    /** Somebody else could not reach it. */
    lost(reason: string): void {
      if (isClosed || brokers.get(b)?.state === 'down') return
      fall({ kind: 'down', reason })
      wake()
    },
    /** Reads all again, soon. */
    crawl(): void {
      isBehind = true
      wake()
    },
    /**
     * Takes in what a notification tells, unless a newer one told of the same entity. False when too many wait.
     * @param stamp when it was made, ms by the broker's clock.
     */
    async take({ entities, deleted, unreadable }: Items, stamp: number): Promise<boolean> {
      if (waiting >= limits.indexNotificationsMax.value) return false
      waiting++
      counts.notifications++
      counts.unreadable += unreadable.length
      try {
        await inTurn(async () => {
          const isNew = (id: string): boolean => {
            const last = told.get(id)
            // Behind that, its clock was set back, and what it tells now is newer.
            const isRecent = last !== undefined && clock.monotonic() - last.at < limits.indexReorderMs.value
            if (isRecent && last.stamp > stamp) return false
            if (told.size >= limits.indexNotifiedMax.value) told.delete(told.keys().next().value!)
            told.delete(id)
            told.set(id, { at: clock.monotonic(), stamp })
            return true
          }
          const changed = entities.filter(({ id }) => isNew(id))
          await catalogue.take(b, { changed, deleted: deleted.filter(isNew) })
        })
      } finally {
        waiting--
      }
      // It is there: whatever made it seem away is over.
      if (brokers.get(b)?.state === 'down') wake()
      return true
    },
    counts: () => ({ ...counts }),
    /** Leaves off. Resolves when nothing of it writes any more. */
    async close(): Promise<void> {
      isClosed = true
      wake()
      await running.promise?.catch(() => undefined)
      await inTurn(async () => undefined)
    },
  })
}
