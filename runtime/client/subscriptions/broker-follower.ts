/**
 * Follows one broker for a component: creates and checks its subscriptions, and reads the broker in full
 * whenever notifications may have been missed. If the broker is unreachable or its answers are unusable, it
 * is checked again.
 */
import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type { BrokerClient, RequestTrouble } from '#client/requests/broker-requests.ts'
import { subscribe, subscriptionStatus, unsubscribe } from './remote-subscriptions.ts'
import { isHiddenFrom, type Notifying, type Silence, silenceOf } from './silence.ts'
import type { Watch } from './watch.ts'

/** Stored facts about a followed broker. */
export interface FollowedFacts extends Notifying {
  /** Subscription ids by purpose. */
  readonly subscriptions?: Readonly<Record<string, string>>
  readonly tellsDeletions?: boolean
  /** Why the broker is down or refused. */
  readonly reason?: string
  /** When it was last known that nothing was missed, ISO 8601. */
  readonly heardAt?: string
  /** Set while the broker cannot notify this gateway. */
  readonly silence?: Silence | undefined
}

/** following: notifies of changes; down: unreachable; refused: its answers are unusable. */
export type FollowedState = 'following' | RequestTrouble['kind']

/** Where state and facts are stored. */
export interface FollowerRow {
  readonly state: () => string | undefined
  readonly facts: () => FollowedFacts
  /** Facts replace those stored. */
  set(change: { readonly state?: FollowedState; readonly facts?: FollowedFacts }): void
}

export interface BrokerFollowerPorts extends ClockAndLog {
  /** Name of the component, for the log. */
  readonly plugin: string
  readonly watches: readonly Watch[]
  /** Ids of subscriptions begin with it. */
  readonly idPrefix: string
  readonly client: BrokerClient
  readonly row: FollowerRow
  /** Reads the broker in full. */
  readonly read: () => Promise<RequestTrouble | undefined>
  /** Whether a notification has arrived in this process. */
  readonly isNotified: () => boolean
  /** Base address of callbacks. Undefined while this gateway has no address that brokers can reach. */
  readonly base: () => string | undefined
  /** Callback address for a purpose. */
  readonly callback: (base: string, purpose: string) => string
  readonly signal: AbortSignal
}

export function createBrokerFollower(ports: BrokerFollowerPorts) {
  const { plugin, watches, idPrefix, client, row, clock, log, base, callback, signal } = ports
  const { facts } = row
  const broker = client.address
  let isBehind = true
  let readAt = Number.NEGATIVE_INFINITY
  let checks = 0
  let wake: () => void = () => {}
  let isClosed = false

  const note = (change: Partial<FollowedFacts>): void => row.set({ facts: { ...facts(), ...change } })

  async function make(watch: Watch, uri: string): Promise<RequestTrouble | undefined> {
    const made = await subscribe(watch, { uri, idPrefix }, client)
    if ('trouble' in made) return made.trouble
    const { id, tellsDeletions } = made.value
    note({ subscriptions: { ...facts().subscriptions, [watch.purpose]: id }, tellsDeletions })
    isBehind = true
    return undefined
  }

  /** Creates a subscription again if it is missing or differs. */
  async function ensure(watch: Watch): Promise<RequestTrouble | undefined> {
    const { purpose } = watch
    const address = base()
    if (address === undefined)
      return { kind: 'down', reason: 'this gateway has no address for notifications' }
    const uri = callback(address, purpose)
    const id = facts().subscriptions?.[purpose]
    if (id === undefined) return make(watch, uri)
    const status = await subscriptionStatus(id, uri, client)
    if ('trouble' in status) return status.trouble
    const { kind, failedAt } = status.value
    if (kind === 'as expected') {
      const { undelivered = {}, madeGood = {} } = facts()
      const { [purpose]: known, ...others } = undelivered
      if (known !== failedAt)
        note({ undelivered: failedAt === undefined ? others : { ...others, [purpose]: failedAt } })
      const isMissed = failedAt !== undefined && failedAt !== madeGood[purpose]
      if (isMissed && clock.monotonic() - readAt > limits.followMissedMs.value) isBehind = true
      return undefined
    }
    if (kind === 'different') await unsubscribe(id, client)
    else log.warn('plugin.subscription-gone', { plugin, broker, subscription: id })
    return make(watch, uri)
  }

  /** Checks one subscription per call, in rotation; all of them if notifications may have been missed. */
  async function checkSubscriptions(): Promise<RequestTrouble | undefined> {
    if (!isBehind) {
      const trouble = await ensure(watches[checks++ % watches.length]!)
      if (trouble !== undefined || !isBehind) return trouble
    }
    for (const watch of watches) {
      const trouble = await ensure(watch)
      if (trouble !== undefined) return trouble
    }
    return undefined
  }

  async function read(): Promise<RequestTrouble | undefined> {
    isBehind = false
    const { undelivered = {} } = facts()
    const trouble = await ports.read()
    if (trouble !== undefined) return trouble
    readAt = clock.monotonic()
    note({ madeGood: undelivered })
    return undefined
  }

  /** Checks the broker once. Reads it in full if necessary. */
  async function check(): Promise<boolean> {
    const before = row.state()
    const checkTrouble = await checkSubscriptions()
    const isRead = checkTrouble === undefined && isBehind
    const trouble = isRead ? await read() : checkTrouble
    if (isClosed || signal.aborted) return false
    if (trouble !== undefined) return markFailed(trouble)
    follow(isRead)
    if (before === 'down' || before === 'refused') log.info('plugin.broker-up', { plugin, broker })
    return true
  }

  /** The broker answers. Nothing was missed, unless it cannot notify this gateway. */
  function follow(isRead: boolean): void {
    const { reason: _, silence: before, ...rest } = facts()
    const address = base() ?? ''
    // If notifications arrive, the address is reachable, whatever it looks like.
    const isHidden = isHiddenFrom(broker, address) && !ports.isNotified()
    const silence = silenceOf(rest, { plugin, base: address, isHidden })
    const current =
      silence?.isAged === true && !isRead ? {} : { heardAt: new Date(clock.now()).toISOString() }
    row.set({ state: 'following', facts: { ...rest, ...current, silence } })
    if (silence !== undefined && before === undefined)
      log.warn('plugin.broker-silent', { plugin, broker, reason: silence.reason })
  }

  /** Records that the broker cannot be reached or used. */
  function markFailed({ kind, reason }: RequestTrouble): false {
    const before = row.state()
    isBehind = true
    row.set({ state: kind })
    note({ reason })
    if (before !== kind) log.warn('plugin.broker-down', { plugin, broker, reason })
    return false
  }

  /** Records a local error, such as a full disk; the next check may succeed. */
  function fail(error: Error): void {
    isBehind = true
    log.error('plugin.failed', { plugin, during: `following ${broker}`, error })
    try {
      row.set({ state: 'refused' })
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
    while (base() === undefined && !isClosed && !signal.aborted) await pause(limits.indexStartMs.value)
    while (!isClosed && !signal.aborted) {
      try {
        await check()
      } catch (error) {
        if (isClosed || signal.aborted) break
        fail(error as Error)
      }
      if (!isClosed) await pause(limits.followCheckMs.value)
    }
  }

  const running = { promise: undefined as Promise<void> | undefined }
  return Object.freeze({
    start(): void {
      running.promise ??= run()
    },
    /** Creates the missing subscriptions now. */
    subscribeAll: checkSubscriptions,
    /** Why the broker does not report everything; none while it does. */
    complaints(): readonly string[] {
      const state = row.state()
      const { reason, silence } = facts()
      if (state === 'down' || state === 'refused') return [`${broker} is ${state}: ${reason ?? ''}`]
      return silence === undefined ? [] : [`${broker}: ${silence.reason}`]
    },
    /** Another request could not reach the broker. */
    reportUnreachable(reason: string): void {
      if (isClosed || row.state() === 'down') return
      markFailed({ kind: 'down', reason })
      wake()
    },
    /** Checks a broker that was down at once, since it sent something. */
    reportHeard(): void {
      if (row.state() === 'down') wake()
    },
    /** Starts a full read soon. */
    readAnew(): void {
      isBehind = true
      wake()
    },
    /** Stops. Resolves when no check is in progress. */
    async close(): Promise<void> {
      isClosed = true
      wake()
      await running.promise?.catch(() => undefined)
    },
  })
}
