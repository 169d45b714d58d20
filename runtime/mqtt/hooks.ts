/**
 * What the broker library asks before it lets a client in, takes a subscription or a QoS 2 message, and what it tells
 * afterwards. Its own way of publishing is replaced by ours.
 */
import type { Aedes, AedesOptions, AuthenticateError, Client, Subscription } from 'aedes'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import { sessionMark } from './persistence.ts'
import type { Presence } from './presence.ts'
import type { MqttParts } from './server.ts'
import { filterProblem, sharePrefix, systemPrefix, topicProblem } from './topics.ts'
import type { Will } from './wills.ts'
import { asQos, type Message } from './wire.ts'

/** What a client says about itself at CONNECT. */
export interface Credentials {
  readonly clientId: string
  readonly username: string | undefined
  readonly password: Uint8Array | undefined
  readonly remoteAddress: string
}

/** CONNACK return codes (MQTT 3.1.1, table 3.1). */
const returnCodes = { identifierRejected: 2, serverUnavailable: 3, badCredentials: 4 } as const

interface HooksPorts extends MqttParts {
  readonly authenticate: (credentials: Credentials) => boolean | Promise<boolean>
}

/** A PUBLISH as the library hands it over; its types differ in every place. */
interface Publish {
  readonly topic: string
  readonly payload: Buffer | string
  readonly qos?: number
  readonly retain?: boolean
  readonly messageId?: number
  readonly clientId?: string
}

export function createHooks(ports: HooksPorts) {
  const { presences, sessions, receipts, retained, routes, arrivals, authenticate } = ports
  let isStopped = false

  const messageOf = (packet: Publish): Message & { retain: boolean } => ({
    topic: packet.topic,
    payload: Buffer.from(packet.payload as Buffer),
    qos: asQos(packet.qos ?? 0),
    retain: packet.retain === true,
  })

  /** A QoS 2 message, or the will of a client that went without saying so. */
  function authorizePublish(
    client: Client | null,
    packet: Publish,
    done: (error?: Error | null) => void,
  ): void {
    if (isStopped) {
      done(new GatewayError('store.closed', 'the gateway is stopping'))
    } else if (packet.clientId === undefined) {
      receiveOnce(client!.id, packet, done)
    } else {
      const message = messageOf(packet)
      const will = packet as Will
      arrivals.receiveHanded({ client: packet.clientId, message, receipt: undefined, will, done })
    }
  }

  /** Takes a QoS 2 message unless it is here already ([MQTT-4.3.3-2]). */
  function receiveOnce(client: string, packet: Publish, done: (error?: Error | null) => void): void {
    const id = packet.messageId ?? 0
    const found = receipts.find(client, id)
    if (found?.state === 'storing') found.waiting.push(done)
    else if (found !== undefined) done()
    else if (receipts.count(client) >= limits.qos2InFlightMax.value) {
      done(new GatewayError('mqtt.ceiling', 'too many QoS 2 messages await PUBREL'))
    } else {
      const receipt = receipts.begin(client, id)
      arrivals.receiveHanded({ client, message: messageOf(packet), receipt, will: undefined, done })
    }
  }

  function authorizeSubscribe(
    client: Client,
    subscription: Subscription,
    done: (error: Error | null, subscription?: Subscription | null) => void,
  ): void {
    const { topic } = subscription
    const problem = filterProblem(topic)
    const presence = presences.of(client)
    if (problem !== undefined) {
      done(new GatewayError('mqtt.topic', problem))
    } else if (topic === sessionMark || isGranted(presence, topic)) {
      done(null, subscription)
    } else {
      Object.assign(subscription, { qos: failure })
      done(null, null)
    }
  }

  /** Shared subscriptions are not built; taken as plain filters they would never match. */
  const isGranted = (presence: Presence | undefined, filter: string): boolean =>
    presence !== undefined && !filter.startsWith(sharePrefix) && presences.reserve(presence, filter)

  async function judge(client: Client, username: string | undefined, password: Buffer | undefined) {
    const presence = presences.of(client)
    if (presence === undefined) throw refusal(returnCodes.serverUnavailable, 'the connection is gone')
    if (presence.refusal !== 0) throw refusal(presence.refusal, 'the client identifier is refused')
    if (!client.clean && sessions.get(client.id) === undefined && sessions.isFull()) {
      throw refusal(returnCodes.serverUnavailable, 'there are too many sessions')
    }
    const { remoteAddress } = presence.link
    if (await authenticate({ clientId: client.id, username, password, remoteAddress })) return
    throw refusal(returnCodes.badCredentials, 'bad user name or password')
  }

  /** CONNACK is sent. */
  function ready(client: Client): void {
    const presence = presences.of(client)
    if (presence === undefined) return
    const session = client.clean ? undefined : sessions.get(client.id)
    presence.session = session
    for (const filter of session?.filters.keys() ?? []) presence.filters.add(filter)
    presence.link.open(client.id)
    if (session !== undefined && presence.link.isOpen()) sessions.open(session, presence.link)
    // Its session was ended by another connection of the same client while it came in.
    if (session === undefined && !client.clean) presence.link.close()
  }

  /** SUBACK is sent: retained messages follow ([MQTT-3.3.1-6]). */
  function subscribed(subscriptions: readonly Subscription[], client: Client): void {
    const presence = presences.of(client)
    if (presence === undefined || !presence.link.isOpen()) return
    for (const { topic, qos } of subscriptions) {
      if (qos > 2) continue
      presences.subscribe(presence, topic, qos)
      const topics = retained.matching(topic).map((message) => message.topic)
      if (topics.length > 0) setImmediate(sendRetained, presence, topics, qos, 0)
    }
  }

  /** Sends retained messages as fast as the client takes them. */
  function sendRetained(presence: Presence, topics: readonly string[], qos: number, from: number): void {
    const { link } = presence
    for (let i = from; i < topics.length && link.isOpen(); i++) {
      if (link.isBacklogged()) {
        link.whenDrained(() => sendRetained(presence, topics, qos, i))
        return
      }
      const message = retained.get(topics[i]!)
      if (message !== undefined) routes.deliver(link, message, asQos(Math.min(message.qos, qos)), true)
    }
  }

  function publish(packet: Publish, client: unknown, done?: unknown): void {
    const message = messageOf(packet)
    if (message.topic.startsWith(systemPrefix)) routes.announce(message)
    else routes.fanOut(routes.ofTopic(message.topic), message)
    const answer = typeof client === 'function' ? client : done
    if (typeof answer === 'function') (answer as () => void)()
  }

  const options: AedesOptions = {
    mq: silentEmitter,
    preConnect(client, packet, done) {
      const presence = presences.of(client)
      const problem = packet.will === undefined ? undefined : topicProblem(packet.will.topic)
      presence?.link.greet(packet.keepalive ?? 0)
      // The link looks at the keep-alive, because the library does not see every packet.
      Object.assign(packet, { keepalive: 0 })
      if (presence !== undefined && isRefusedId(packet.clientId, packet.clean !== false)) {
        presence.refusal = returnCodes.identifierRejected
      }
      done(problem === undefined ? null : new GatewayError('mqtt.topic', problem), problem === undefined)
    },
    authenticate(client, username, password, done) {
      judge(client, username, password).then(
        () => done(null, true),
        (error: Error) =>
          done('returnCode' in error ? (error as AuthenticateError) : unavailable(error), false),
      )
    },
    authorizePublish,
    authorizeSubscribe,
  }

  return Object.freeze({
    options,
    attach(broker: Aedes): void {
      Object.assign(broker, { publish })
      broker.on('clientReady', ready)
      broker.on('subscribe', subscribed)
      broker.on('unsubscribe', (filters, client) => {
        const presence = presences.of(client)
        if (presence !== undefined) for (const filter of filters) presences.unsubscribe(presence, filter)
      })
    },
    /** From now on nothing is published any more, wills neither: they wait on disk. */
    stop(): void {
      isStopped = true
    },
  })
}

/** SUBACK return code of a subscription that is refused. */
const failure = 128

/** The library's emitter carries nothing, since we route messages ourselves. */
const silentEmitter = Object.freeze({
  on: (_topic: string, _listener: unknown, done?: () => void) => void (done && setImmediate(done)),
  removeListener: (_topic: string, _listener: unknown, done?: () => void) =>
    void (done && setImmediate(done)),
  emit: (_packet: unknown, done?: () => void) => void (done && setImmediate(done)),
  close: (done: () => void) => setImmediate(done),
})

/** An identifier that no session may have: [MQTT-3.1.3-8], [MQTT-1.5.3-1], [MQTT-1.5.3-2], or longer than ours may be. */
function isRefusedId(clientId: string, clean: boolean): boolean {
  if (clientId === '') return !clean
  return /[\u0000\uFFFD]/.test(clientId) || Buffer.byteLength(clientId) > limits.mqttClientIdBytesMax.value
}

/** Nobody can say now whether the client may come in. */
const unavailable = (error: Error): AuthenticateError =>
  refusal(returnCodes.serverUnavailable, `the login cannot be judged: ${error.message}`)

function refusal(returnCode: number, message: string): AuthenticateError {
  return Object.assign(new GatewayError('mqtt.refused', message), { returnCode }) as AuthenticateError
}
