/**
 * Publishes single messages, such as notifications (GS CIM 009, 7.2), to the brokers named in their URIs,
 * this gateway's included, and returns the outcome. It never throws or rejects. A connection is kept while it
 * is used. The next delivery reopens a lost connection; retrying is the job of the dispatcher. With QoS 1 and
 * 2, success means acknowledged by the broker; with QoS 0, written to its connection.
 */
import { randomUUID } from 'node:crypto'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { MqttClient } from 'mqtt'
import { limits } from '#base/limits/limits.ts'
import { isLoopback, lookupRemote, refusedLoopback } from '#base/load/loopback.ts'
import { messageOf, noteCertificate, type Validity } from '#base/time/certificate-time.ts'
import type { Clock } from '#base/time/clock.ts'
import { mqttTopicOf } from '#ngsi-ld/subscription/notification-parse.ts'

/**
 * MQTT options of a publication: version 4 is MQTT 3.1.1. Without a version, the newest one that the broker
 * accepts is used.
 */
export interface MqttOptions {
  readonly version: 4 | 5 | undefined
  readonly qos: 0 | 1 | 2
}

export interface Publication {
  /** `mqtt[s]://[user[:password]@]host[:port]/topic` */
  readonly uri: string
  readonly body: string | Buffer
  /** Acknowledgement timeout in ms, instead of the default. */
  readonly timeoutMs?: number | undefined
  readonly mqtt: MqttOptions
}

export type PublishFailureKind =
  | 'refused'
  | 'unreachable'
  | 'dns'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'forbidden'
  | 'unsendable'

export interface PublishFailure {
  readonly ok: false
  readonly kind: PublishFailureKind
  /** For people. */
  readonly reason: string
}

export type Published = { readonly ok: true; readonly status: number } | PublishFailure

export interface Publisher {
  send(publication: Publication): Promise<Published>
  close(): void
}

const usualPorts: Readonly<Record<string, number>> = { 'mqtt:': 1883, 'mqtts:': 8883 }

/** A connection to a broker, with one user and one version. */
interface Line {
  readonly client: MqttClient
  /** Resolves to undefined when the broker accepts the connection, otherwise to the failure. */
  readonly opened: Promise<PublishFailure | undefined>
  /** Called with the failure when the connection ends. */
  readonly pending: Set<(failure: PublishFailure) => void>
  usedAt: number
  isGone: boolean
  /** Largest packet in bytes that an MQTT 5 broker accepts, if it states one. */
  packetBytesMax: number
}

interface Target {
  readonly key: string
  readonly url: URL
  readonly host: string
  readonly port: number
  readonly version: 4 | 5
}

export interface PublisherSettings {
  /** True when brokers on this machine may be published to. */
  readonly allowsLoopback: boolean
  /** Trusted certificate authorities in PEM; undefined for those of the system. */
  readonly ca?: readonly string[] | undefined
  /** Receives the ids of connected clients, so that callers can recognize the gateway's own messages. */
  readonly clients?: Set<string> | undefined
}

export function createPublisher(clock: Clock, settings: PublisherSettings): Publisher {
  const lines = new Map<string, Line>()
  /** Brokers that do not support MQTT 5. */
  const old = new Set<string>()
  const idleMs = limits.mqttIdleMs.value
  const sweep = setInterval(() => drop(clock.monotonic() - idleMs), idleMs).unref()

  /** Closes connections without pending messages that were not used after `since`. */
  function drop(since: number): void {
    for (const [key, line] of lines) {
      if (line.pending.size > 0 || line.usedAt > since) continue
      lines.delete(key)
      line.client.end()
    }
  }

  function connectionOf(target: Target): Line {
    const known = lines.get(target.key)
    if (known !== undefined && !known.isGone) return known
    if (lines.size >= limits.mqttTargetsMax.value) drop(Number.POSITIVE_INFINITY)
    const line = open(target, settings)
    lines.set(target.key, line)
    return line
  }

  async function publish(target: Target, request: Publication, topic: string): Promise<Published> {
    const line = connectionOf(target)
    line.usedAt = clock.monotonic()
    const refused = await line.opened
    if (refused !== undefined) {
      if (lines.get(target.key) === line) lines.delete(target.key)
      return refused
    }
    if (packetBytes(target.version, topic, request) > line.packetBytesMax)
      return failure('unsendable', `the broker accepts packets of at most ${line.packetBytesMax} bytes`)
    const ms = Math.min(
      request.timeoutMs ?? limits.deliveryTimeoutMs.value,
      limits.deliveryTimeoutMsMax.value,
    )
    const sent = await publishOn(line, { topic, body: request.body, options: request.mqtt, ms })
    line.usedAt = clock.monotonic()
    return sent
  }

  return Object.freeze({
    async send(request) {
      const topic = mqttTopicOf(request.uri)
      const url = URL.canParse(request.uri) ? new URL(request.uri) : undefined
      const usual = usualPorts[url?.protocol ?? '']
      if (
        url === undefined ||
        usual === undefined ||
        url.hostname === '' ||
        topic === undefined ||
        topic === ''
      )
        return failure('unsendable', 'the endpoint is not an MQTT URI with host and topic')
      if (Buffer.byteLength(request.body) > limits.deliveryBytesMax.value)
        return failure('unsendable', `the notification exceeds ${limits.deliveryBytesMax.value} bytes`)
      const host = url.hostname.replace(/^\[|\]$/g, '')
      const port = url.port === '' ? usual : Number(url.port)
      const origin = `${url.protocol}//${host}:${port}`
      if (!settings.allowsLoopback && isLoopback(host)) return failure('forbidden', refusedLoopback(host))
      const { version } = request.mqtt
      const targetOf = (version: 4 | 5): Target => {
        return { key: `${version} ${url.username}:${url.password}@${origin}`, url, host, port, version }
      }
      const first = version ?? (old.has(origin) ? 4 : 5)
      const sent = await publish(targetOf(first), request, topic)
      if (sent.ok || first === 4 || version !== undefined || !speaksOlder(sent)) return sent
      const again = await publish(targetOf(4), request, topic)
      if (again.ok && old.size < limits.mqttTargetsMax.value) old.add(origin)
      return again
    },
    close() {
      clearInterval(sweep)
      for (const { client } of lines.values()) client.end(true)
      lines.clear()
    },
  } satisfies Publisher)
}

/** The broker was reached but refused CONNECT, so it may be older than MQTT 5. */
const speaksOlder = (sent: PublishFailure): boolean => sent.kind === 'protocol'

function open({ url, host, port, version }: Target, settings: PublisherSettings): Line {
  let isConnected = false
  let isTaken = false
  const socket = openSocket(url, { host, port }, settings)
  const certificate = noteCertificate(socket)
  socket.once(url.protocol === 'mqtts:' ? 'secureConnect' : 'connect', () => {
    isConnected = true
  })
  const clientId = `selvedge-${randomUUID().slice(0, 13)}`
  settings.clients?.add(clientId)
  const client = new MqttClient(() => socket, {
    protocolVersion: version,
    clean: true,
    clientId,
    reconnectPeriod: 0,
    connectTimeout: limits.deliveryConnectMs.value,
    keepalive: 30,
    ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
  })
  const pending = new Set<(failure: PublishFailure) => void>()
  let reason: PublishFailure | undefined
  const opened = new Promise<PublishFailure | undefined>((resolve) => {
    client.once('connect', ({ properties }) => {
      isTaken = true
      line.packetBytesMax = properties?.maximumPacketSize ?? Number.POSITIVE_INFINITY
      resolve(undefined)
    })
    client.once('close', () => {
      settings.clients?.delete(clientId)
      line.isGone = true
      const lost = reason ?? diagnoseEnd(isConnected, isTaken)
      resolve(lost)
      for (const settle of [...pending]) settle(lost)
      client.end(true)
    })
  })
  client.on('error', (error) => {
    reason = diagnose(error, isConnected, certificate())
    client.end(true)
  })
  const line: Line = { client, opened, pending, usedAt: 0, isGone: false, packetBytesMax: 0 }
  return line
}

function openSocket(url: URL, address: { host: string; port: number }, settings: PublisherSettings): Socket {
  const options = {
    ...address,
    autoSelectFamilyAttemptTimeout: 1000,
    ...(settings.allowsLoopback ? {} : { lookup: lookupRemote }),
  }
  if (url.protocol !== 'mqtts:') return connectTcp(options)
  const servername = /^[\d.]+$|:/.test(address.host) ? {} : { servername: address.host }
  const ca = settings.ca === undefined ? {} : { ca: [...settings.ca] }
  return connectTls({ ...options, ...servername, ...ca, rejectUnauthorized: true })
}

function publishOn(
  line: Line,
  { topic, body, options, ms }: { topic: string; body: string | Buffer; options: MqttOptions; ms: number },
): Promise<Published> {
  return new Promise((resolve) => {
    const settle = (sent: Published): void => {
      clearTimeout(timer)
      line.pending.delete(settle)
      resolve(sent)
    }
    const timer = setTimeout(() => {
      settle(failure('timeout', `not acknowledged within ${ms} ms`))
      // The message is published again later, so a late acknowledgement must not arrive.
      line.client.end(true)
    }, ms)
    line.pending.add(settle)
    if (line.isGone) return settle(failure('reset', 'the connection was closed'))
    unpooled(() => {
      line.client.publish(topic, body, { qos: options.qos }, (error) => {
        settle(error == null ? { ok: true, status: 0 } : failure('protocol', error.message))
      })
    })
  })
}

/**
 * Size of the PUBLISH, which has no properties; a larger packet than the broker accepts must not be sent
 * [MQTT-3.2.2-15].
 */
function packetBytes(version: 4 | 5, topic: string, { body, mqtt }: Publication): number {
  const rest =
    2 + Buffer.byteLength(topic) + (mqtt.qos > 0 ? 2 : 0) + (version === 5 ? 1 : 0) + Buffer.byteLength(body)
  return 1 + (rest < 128 ? 1 : rest < 16_384 ? 2 : rest < 2_097_152 ? 3 : 4) + rest
}

/**
 * Gives small buffers their own memory during `action`. The library caches one 4-byte buffer for every packet
 * length below 16,384, forever. Taken from Node's shared pool, each would keep 64 kB alive, about 1 GB in the
 * end.
 */
function unpooled(action: () => void): void {
  const { poolSize } = Buffer
  Buffer.poolSize = 0
  try {
    action()
  } finally {
    Buffer.poolSize = poolSize
  }
}

/** A numeric code is that of a CONNACK that refuses the connection. */
function diagnose(
  error: Error & { code?: string | number },
  isConnected: boolean,
  shown: Validity | undefined,
): PublishFailure {
  const { code } = error
  if (typeof code === 'number') return failure('protocol', error.message)
  return failure(kindOf(code ?? '', isConnected), messageOf(error, shown))
}

function diagnoseEnd(isConnected: boolean, isTaken: boolean): PublishFailure {
  if (isTaken) return failure('reset', 'the connection was closed')
  return isConnected
    ? failure('protocol', 'the connection was closed without an answer to CONNECT')
    : failure('unreachable', 'the connection could not be opened')
}

function kindOf(code: string, isConnected: boolean): PublishFailureKind {
  if (code === 'peer.loopback') return 'forbidden'
  if (code === 'ECONNREFUSED') return 'refused'
  if (code === 'ENOTFOUND' || code.startsWith('EAI_')) return 'dns'
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS') || /CERT|SIGNATURE/.test(code)) return 'tls'
  if (!isConnected) return 'unreachable'
  return code === '' ? 'protocol' : 'reset'
}

const failure = (kind: PublishFailureKind, reason: string): PublishFailure => ({ ok: false, kind, reason })
