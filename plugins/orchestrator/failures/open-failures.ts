/**
 * Opens the part of the orchestrator that notifies applications when a stream fails that they subscribed to,
 * and when it recovers. Streams of the default tenant are watched.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { createBrokerClient } from '#client/requests/broker-requests.ts'
import type { BrokerPort, Host, Json } from '#contract'
import { iotStream } from '#contract/vocabulary.ts'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'
import { isObject, type JsonObject, listOf, own, parsedJson, textsOf } from '#ngsi-ld/values/json.ts'
import type { NotificationOutbox } from '#plugins/orchestrator/notifications/notification-outbox.ts'
import type {
  SharedSubscription,
  SharedSubscriptions,
} from '#plugins/orchestrator/subscriptions/shared-subscriptions.ts'
import { isSwitching } from '#plugins/orchestrator/subscriptions/subscription-form.ts'
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
  /** The alternatives changed that the observations of a subscription come from. */
  readonly switched: (subscription: string) => void
  /** Address at which the broker notifies the orchestrator of streams; undefined until it is known. */
  readonly callback: () => string | undefined
}

export function openStreamFailures(ports: StreamFailuresPorts) {
  const { host, broker, ranking, outbox, shared, switched, callback } = ports
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
      return { body, context: { '@context': context }, isSwitching: isSwitching(body) }
    },
    missing: want,
    noted() {
      notices.value++
    },
    switched,
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
    for (const failed of table.switchedFrom(id)) checks.checkStream(failed)
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

  const followers = { table, known, unknown, virtualStream, readAnew, callback }
  const followed: FollowedStreams =
    host.settings.broker === 'mdr'
      ? createLogWatch(followers, host)
      : createRemoteWatch({ ...followers, client, setOutage }, host)

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
    /** Selectors of the entities that a subscription was switched to, for the broker. */
    switchedTo: (id: string): readonly JsonObject[] =>
      table.switches(id).map(({ stream, entity }) => ({
        id: entity,
        type: entity === stream ? iotStream.IotStream : iotStream.StreamObservation,
      })),
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
