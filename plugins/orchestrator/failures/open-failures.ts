/**
 * Opens the part of the orchestrator that notifies applications when a stream fails that they subscribed to,
 * and when it recovers. Streams of the default tenant are watched.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { createBrokerClient } from '#client/requests/broker-requests.ts'
import type { BrokerPort, Host, Json } from '#contract'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'
import { isObject, type JsonObject, listOf, own, parsedJson, textsOf } from '#ngsi-ld/values/json.ts'
import type { NotificationOutbox } from '#plugins/orchestrator/notifications/notification-outbox.ts'
import type {
  SharedSubscription,
  SharedSubscriptions,
} from '#plugins/orchestrator/subscriptions/shared-subscriptions.ts'
import { createAlternatives, isVirtualSensor, replacedSensor } from './alternatives.ts'
import { prepareFailures } from './failure-statements.ts'
import type { FollowedStreams } from './followed-streams.ts'
import { createLogWatch } from './log-watch.ts'
import { createRemoteWatch } from './remote-watch.ts'
import { createStreamChecks } from './stream-checks.ts'
import { createStreamReading } from './stream-reading.ts'

export interface StreamFailuresPorts {
  readonly host: Host<{ readonly broker: string }, 'mdr' | 'changes' | 'database'>
  readonly broker: BrokerPort
  readonly ranking: BrokerPort
  readonly outbox: Pick<NotificationOutbox, 'append'>
  readonly shared: () => Pick<SharedSubscriptions, 'get' | 'ids' | 'bodyOf'>
  /** Address at which the broker notifies the orchestrator of streams; undefined until it is known. */
  readonly callback: () => string | undefined
}

export function openStreamFailures({ host, broker, ranking, outbox, shared, callback }: StreamFailuresPorts) {
  const { database, clock, log, signal, metrics } = host
  const table = prepareFailures(database)
  const notices = metrics.counter('selvedge_orchestrator_failure_notices_total')
  const client = createBrokerClient({ port: broker, signal, monotonic: clock.monotonic, paceMs: 0 })
  const reading = createStreamReading(client, clock)
  const alternatives = createAlternatives({ reading, ranking, now: clock.now })
  /** Subscriptions by the ids of entities that they wait for or select. */
  const wanted = new Map<string, Set<string>>()
  /** Subscriptions that select entities without an id. */
  const wide = new Set<string>()
  /** Entities that no subscription selects, until a subscription is added. */
  const others = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let isStarted = false

  const checks = createStreamChecks({
    table,
    outbox,
    reading,
    alternatives,
    subscription(id) {
      const found = shared().get(id)
      if (found === undefined || found.tenant !== '') return undefined
      const body = shared().bodyOf(id)
      const context = own(body, '@context') ?? own(platformContextDocument as JsonObject, '@context') ?? null
      return { body, context: { '@context': context } }
    },
    missing: want,
    noted() {
      notices.value++
    },
    clock,
    log,
    signal,
  })

  function want(entity: string, id: string): void {
    const waiting = wanted.get(entity) ?? new Set()
    wanted.set(entity, waiting.add(id))
    others.delete(entity)
  }

  function known(id: string): boolean {
    const stream = table.streamOf(id)
    if (stream !== undefined) checks.checkStream(stream)
    return stream !== undefined
  }

  /** An entity that is new, or that nobody selects. */
  function unknown(id: string): void {
    if (others.has(id)) return
    if (others.size >= limits.orchestratorOthersMax.value) others.clear()
    others.add(id)
    for (const one of wanted.get(id) ?? []) checks.resolve(one)
    if (wide.size > 0) timer ??= setTimeout(resolveWide, limits.orchestratorResolveMs.value).unref()
  }

  function resolveWide(): void {
    timer = undefined
    for (const id of wide) checks.resolve(id)
  }

  function virtualStream(sensorOf: () => string | undefined): void {
    if (table.failed() === 0) return
    const sensor = sensorOf()
    if (sensor === undefined || !isVirtualSensor(sensor)) return
    for (const { stream, failure } of table.ofSensor(replacedSensor(sensor)))
      if (failure?.isReplaced === false) checks.checkStream(stream)
  }

  function readAnew(): void {
    for (const id of shared().ids()) checks.resolve(id)
  }

  /** Notes which entities a subscription selects, and finds their streams. */
  function watch({ id, tenant }: SharedSubscription): void {
    if (tenant !== '') return
    for (const selector of listOf<Json>(own(shared().bodyOf(id), 'entities') ?? []).filter(isObject)) {
      const ids = textsOf(own(selector, 'id') ?? [])
      for (const one of ids) want(one, id)
      if (ids.length === 0) wide.add(id)
    }
    others.clear()
    if (!isStarted) return
    followed.start()
    checks.resolve(id)
  }

  const ports = { table, known, unknown, virtualStream, readAnew, callback }
  const followed: FollowedStreams =
    host.settings.broker === 'mdr'
      ? createLogWatch(ports, host)
      : createRemoteWatch({ ...ports, client, setOutage }, host)

  function setOutage(reason: string | undefined): void {
    checks.setOutage(reason)
    if (reason === undefined) readAnew()
  }

  return Object.freeze({
    /** A subscription has been stored at the broker. */
    watch,
    /** A subscription ended. */
    unwatch(id: string): void {
      table.remove(id)
      checks.forget(id)
      wide.delete(id)
      for (const [entity, waiting] of wanted)
        if (waiting.delete(id) && waiting.size === 0) wanted.delete(entity)
    },
    /** Follows the streams of the broker, once there is a subscription. */
    start(): void {
      isStarted = true
      for (const id of shared().ids()) watch(shared().get(id)!)
    },
    /**
     * Takes a notification of the broker about streams, if its address has the secret for them. Returns false
     * for any other one.
     * @throws ngsi-ld.bad-request-data
     */
    async receive(secret: string, read: () => Promise<Buffer>): Promise<boolean> {
      const expected = callback()
      if (followed.receive === undefined || expected === undefined) return false
      if (hash('sha256', secret) !== hash('sha256', expected.slice(expected.lastIndexOf('/') + 1)))
        return false
      followed.receive(parsedJson((await read()).toString()) ?? null)
      return true
    },
    status: () => ({ watched: table.count(), failed: table.failed(), unwatched: checks.unwatched() }),
    complaints: (): readonly string[] => {
      const [trouble, failure] = [checks.trouble(), alternatives.failure()]
      return [
        ...followed.complaints(),
        ...(trouble === undefined ? [] : [`streams cannot be checked for failures: ${trouble}`]),
        ...(failure === undefined ? [] : [`alternatives of failed streams cannot be ranked: ${failure}`]),
      ]
    },
    async close(): Promise<void> {
      clearTimeout(timer)
      await followed.close()
      await checks.close()
    },
  })
}
