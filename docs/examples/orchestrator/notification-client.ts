/**
 * A client of the orchestrator for applications. It subscribes without an address of its own, receives notifications
 * and notices of failed streams from RabbitMQ or as Server-Sent Events, and continues after each cut.
 *
 * Copy this file: it requires Node 24 and, for RabbitMQ, the package `amqplib`. Each notification is passed on at
 * least once and in order; those that arrive again are recognised by their id and dropped.
 */
import { setTimeout as pause } from 'node:timers/promises'

/** A notification or a notice, as it was sent. */
export interface ApplicationMessage {
  readonly id: string
  /** `Notification`, `StreamFailure` or `StreamRecovery`. */
  readonly type: string
  readonly subscriptionId: string
  readonly [member: string]: unknown
}

export interface NotificationClientOptions {
  /** Address of the orchestrator, such as `http://localhost:3001`. */
  readonly orchestrator: string
  /** Names this application among those that share subscriptions. The subject of a token replaces it. */
  readonly client: string
  readonly token?: string
  readonly tenant?: string
  /** An NGSI-LD subscription whose endpoint has no address. */
  readonly subscription: Readonly<Record<string, unknown>>
  /** Left out: notifications are received as Server-Sent Events. */
  readonly amqp?: {
    /** `amqp://user:password@host:port/vhost`, or `amqps://`. */
    readonly url: string
    /** Certificate authority in PEM, for `amqps`; those of the system if left out. */
    readonly ca?: string
    /** Whether notifications wait in a queue of this client while it is away. */
    readonly isDurable?: boolean
  }
  /** Receives each notification after the former one. One that it rejects is passed on again if it can be received again. */
  readonly onNotification: (notification: ApplicationMessage) => unknown
  /** Receives notices that a stream failed or recovered. */
  readonly onNotice?: (notice: ApplicationMessage) => unknown
  /** Receives the reason of each failure; the client tries again. */
  readonly onTrouble?: (reason: string) => void
  /** How often it subscribes again, in case the orchestrator lost its data; default 30 seconds. */
  readonly refreshMs?: number
  /** The longest pause between two attempts to connect; default 10 seconds. */
  readonly pauseMsMax?: number
}

/** Ids by which repeats are recognised. */
const rememberedIds = 10_000
/** Messages that RabbitMQ sends ahead, and those it keeps for a client that does not read. */
const [sentAhead, keptByServer] = [100, 10_000]
/** The orchestrator sends a sign of life every 15 seconds. */
const silenceMsMax = 60_000
const requestMsMax = 20_000

/** Where messages are received. */
interface Source {
  readonly id: string
  /** A durable queue; undefined for the exchange of the subscription, and for Server-Sent Events. */
  readonly queue: string | undefined
}

/** A connection that is being received from. */
interface Reception {
  readonly source: Source
  /** Passes a message on. Rejects if the application rejected it. */
  readonly take: (text: string) => Promise<void>
  /** To be called once messages can arrive. */
  readonly begun: () => void
  /** Ends the connection. */
  readonly signal: AbortSignal
}

export class SubscriptionRefused extends Error {}

/** Subscribes, and receives until `close` or `unsubscribe`. */
export function openNotificationClient(options: NotificationClientOptions) {
  const { amqp, onNotification, onNotice, onTrouble, refreshMs = 30_000, pauseMsMax = 10_000 } = options
  const requests = createRequests(options)
  const ending = new AbortController()
  const subscribed = Promise.withResolvers<string>()
  const seen = new Set<string>()
  const isDurable = amqp === undefined || amqp.isDurable === true
  let source: Source | undefined
  let subscribing: Promise<Source> | undefined
  let connection = new AbortController()
  let isReceiving = false
  let handled = 0

  const trouble = (error: unknown): void => {
    if (!ending.signal.aborted) onTrouble?.(error instanceof Error ? error.message : String(error))
  }

  /** Subscribing again changes nothing where the subscription exists. */
  function subscribe(): Promise<Source> {
    subscribing ??= requests
      .subscribe()
      .then(found)
      .finally(() => {
        subscribing = undefined
      })
    return subscribing
  }

  function found(next: Source): Source {
    const isMoved = source !== undefined && (source.id !== next.id || source.queue !== next.queue)
    source = next
    subscribed.resolve(next.id)
    if (isMoved) connection.abort(new Error('the subscription has another id or queue now'))
    return next
  }

  async function take(text: string): Promise<void> {
    let message: ApplicationMessage
    try {
      message = JSON.parse(text) as ApplicationMessage
    } catch {
      return trouble('a message is not JSON')
    }
    if (seen.has(message.id)) return
    try {
      await (/^Stream(?:Failure|Recovery)$/.test(message.type)
        ? onNotice?.(message)
        : onNotification(message))
    } catch (error) {
      if (isDurable) throw error
      trouble(error)
    }
    handled++
    seen.add(message.id)
    if (seen.size > rememberedIds) seen.delete(seen.values().next().value!)
  }

  /** Receives until the connection is cut. An orchestrator that is away does not hinder the reception. */
  async function receive(): Promise<void> {
    const current = await subscribe().catch((error: unknown) => {
      if (source === undefined) throw error
      trouble(error)
      return source
    })
    connection = new AbortController()
    const reception: Reception = {
      source: current,
      take,
      begun: () => {
        isReceiving = true
      },
      signal: AbortSignal.any([ending.signal, connection.signal]),
    }
    const refreshing = setInterval(() => void subscribe().catch(trouble), refreshMs)
    try {
      await (amqp === undefined ? receiveEvents(requests, reception) : receiveByAmqp(amqp, reception))
    } finally {
      clearInterval(refreshing)
      isReceiving = false
    }
  }

  /** Pauses grow while nothing is received. */
  async function run(): Promise<void> {
    let failures = 0
    while (!ending.signal.aborted) {
      const [from, before] = [performance.now(), handled]
      try {
        await receive()
      } catch (error) {
        if (error instanceof SubscriptionRefused && source === undefined) throw error
        trouble(error)
      }
      const wasGood = handled > before || performance.now() - from > 2 * pauseMsMax
      failures = wasGood ? 0 : failures + 1
      const pauseMs = Math.min(250 * 2 ** failures, pauseMsMax) * (0.5 + Math.random() / 2)
      await pause(pauseMs, undefined, { signal: ending.signal }).catch(() => undefined)
    }
  }

  const running = run().catch((error: unknown) => {
    trouble(error)
    subscribed.reject(error)
  })
  subscribed.promise.catch(() => undefined)

  const client = {
    /** The id of the subscription. Rejects with SubscriptionRefused if it is not valid. */
    subscribed: subscribed.promise,
    /** Whether messages can arrive at this moment. */
    isReceiving: () => isReceiving,
    /** Ends this client; the subscription remains, and a durable queue collects what arrives. */
    async close(): Promise<void> {
      ending.abort(new Error('the client was closed'))
      subscribed.reject(ending.signal.reason)
      await running
      await subscribing?.catch(() => undefined)
    },
    /** Ends this client and its subscription. Call it again if it rejects. */
    async unsubscribe(): Promise<void> {
      await client.close()
      if (source !== undefined) await requests.unsubscribe(source.id)
    },
  }
  return client
}

type Requests = ReturnType<typeof createRequests>

/** The requests to the orchestrator. */
function createRequests({
  orchestrator,
  client,
  token,
  tenant,
  subscription,
  amqp,
}: NotificationClientOptions) {
  const path = `${orchestrator.replace(/\/+$/, '')}/ngsi-ld/v1/subscriptions`
  const pathOf = (id: string): string => `${path}/${encodeURIComponent(id)}`
  const headers: Readonly<Record<string, string>> = {
    'Selvedge-Client': client,
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(tenant === undefined ? {} : { 'NGSILD-Tenant': tenant }),
  }
  const isDurable = amqp?.isDurable === true
  const body = JSON.stringify(isDurable ? durable(subscription) : subscription)
  const send = (method: string, to: string): Promise<Response> =>
    fetch(to, { method, headers, signal: AbortSignal.timeout(requestMsMax) })

  return {
    /** @throws SubscriptionRefused for a subscription that is not valid. */
    async subscribe(): Promise<Source> {
      const signal = AbortSignal.timeout(requestMsMax)
      const type = { 'Content-Type': 'application/ld+json' }
      const answer = await fetch(path, { method: 'POST', headers: { ...headers, ...type }, body, signal })
      const text = await answer.text()
      const { status } = answer
      if (status >= 400 && status < 500 && ![408, 425, 429].includes(status))
        throw new SubscriptionRefused(`the orchestrator refused the subscription: ${status} ${text}`)
      if (status === 201) throw new SubscriptionRefused('the subscription has an address of its own')
      if (status !== 200) throw new Error(`the orchestrator answered ${status}`)
      const queue = answer.headers.get('selvedge-queue') ?? undefined
      if (isDurable && queue === undefined) throw new Error('the orchestrator has no RabbitMQ')
      return { id: text, queue }
    },
    async unsubscribe(id: string): Promise<void> {
      const { status } = await send('DELETE', pathOf(id))
      if (status !== 204 && status !== 404) throw new Error(`the orchestrator answered ${status}`)
    },
    events: (id: string, signal: AbortSignal): Promise<Response> =>
      fetch(`${pathOf(id)}/notifications`, { headers: { ...headers, Accept: 'text/event-stream' }, signal }),
    /** Confirms all events up to one. */
    async confirm(id: string, event: string): Promise<void> {
      const { status } = await send('DELETE', `${pathOf(id)}/notifications?until=${event}`)
      if (status !== 204) throw new Error(`the orchestrator answered ${status} to a confirmation`)
    },
  }
}

/** A subscription that asks for a durable queue. */
function durable(subscription: NotificationClientOptions['subscription']): object {
  const { notification } = subscription as { notification?: { endpoint?: { notifierInfo?: object[] } } }
  const pair = { key: 'selvedge:delivery', value: 'durable' }
  const notifierInfo = [...(notification?.endpoint?.notifierInfo ?? []), pair]
  const endpoint = { ...notification?.endpoint, notifierInfo }
  return { ...subscription, notification: { ...notification, endpoint } }
}

/** Consumes a durable queue, or an exclusive queue that is bound to the exchange of the subscription. */
async function receiveByAmqp(
  { url, ca }: NonNullable<NotificationClientOptions['amqp']>,
  { source: { id, queue: durableQueue }, take, begun, signal }: Reception,
): Promise<void> {
  const { connect } = await import('amqplib')
  const address = new URL(url)
  address.searchParams.set('heartbeat', '10')
  const model = await connect(address.href, {
    timeout: requestMsMax,
    ...(ca === undefined ? {} : { ca: [ca] }),
  })
  const cut = Promise.withResolvers<never>()
  cut.promise.catch(() => undefined)
  const lost = (error?: Error): void =>
    cut.reject(error ?? new Error('the connection to RabbitMQ was closed'))
  const ended = (): void => cut.reject(signal.reason)
  let turn = Promise.resolve()
  model.on('error', lost).on('close', lost)
  signal.addEventListener('abort', ended)
  try {
    signal.throwIfAborted()
    const channel = await model.createChannel()
    channel.on('error', lost).on('close', () => lost())
    await channel.prefetch(sentAhead)
    let queue = durableQueue
    if (queue === undefined) {
      // A restart of RabbitMQ deletes the exchange; it may not be declared again yet.
      await channel.assertExchange(id, 'fanout', { durable: false, autoDelete: false })
      queue = (await channel.assertQueue('', { exclusive: true, maxLength: keptByServer })).queue
      await channel.bindQueue(queue, id, '')
    }
    await channel.consume(queue, (message) => {
      if (message === null) return lost(new Error('the queue was deleted'))
      turn = turn.then(() => take(message.content.toString())).then(() => channel.ack(message))
      turn.catch(lost)
    })
    begun()
    await cut.promise
  } finally {
    signal.removeEventListener('abort', ended)
    // RabbitMQ sends a message again that the application still handles; its id is known then.
    await turn.catch(() => undefined)
    await model.close().catch(() => undefined)
  }
}

/** Receives Server-Sent Events, and confirms what the application has handled. */
async function receiveEvents(
  requests: Requests,
  { source: { id }, take, begun, signal }: Reception,
): Promise<void> {
  const silence = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const wait = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => silence.abort(new Error('the orchestrator is silent')), silenceMsMax)
  }
  let last: string | undefined
  let confirming: Promise<void> | undefined
  /** Confirms the last event; one request at a time. */
  const confirm = async (): Promise<void> => {
    for (let sent: string | undefined; sent !== last; ) {
      sent = last
      await requests.confirm(id, sent!)
    }
  }
  try {
    wait()
    const answer = await requests.events(id, AbortSignal.any([signal, silence.signal]))
    if (answer.status !== 200)
      throw new Error(`the orchestrator answered ${answer.status} ${await answer.text()}`)
    begun()
    for await (const { event, data } of eventsOf(answer.body!, wait)) {
      clearTimeout(timer)
      await take(data)
      wait()
      last = event
      // Events that are not confirmed arrive again after the next cut.
      confirming ??= confirm()
        .catch(() => undefined)
        .finally(() => {
          confirming = undefined
        })
    }
    throw new Error('the orchestrator ended the stream')
  } finally {
    clearTimeout(timer)
    await confirming
  }
}

/** The events of a stream. @param alive called with each sign of life. */
async function* eventsOf(body: ReadableStream<Uint8Array>, alive: () => void) {
  let rest = ''
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    alive()
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const [, event] = /^id: ?(.*)$/m.exec(block) ?? []
      const [, data] = /^data: ?(.*)$/m.exec(block) ?? []
      if (event !== undefined && data !== undefined) yield { event, data }
    }
  }
}
