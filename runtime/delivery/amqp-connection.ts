/**
 * Connects to an AMQP 0-9-1 broker. A connection that is lost or cannot be made is opened again after a pause
 * that grows with each attempt.
 */
import { type ChannelModel, connect, type RecoveringChannelModel } from 'amqplib'
import { limits } from '#base/limits/limits.ts'

export interface AmqpConnectionSettings {
  /** `amqp://host:port/vhost` or `amqps://...`. */
  readonly url: string
  /** Default: guest. */
  readonly username?: string | undefined
  /** Called for each connection, so that a new password needs no restart. @throws for an unreadable file. */
  readonly password?: (() => string) | undefined
  /** Certificate authorities in PEM, for amqps; the system's when left out. */
  readonly ca?: readonly string[] | undefined
  /** Longest pause between two attempts; overrides the default. */
  readonly retryMsMax?: number | undefined
}

/**
 * Returns before the first attempt; its events report each connection and each failure.
 * @param ending destroys the socket when it is aborted.
 */
export function connectAmqp(
  { url, username, password, ca, retryMsMax = limits.bridgeRetryMsMax.value }: AmqpConnectionSettings,
  ending: AbortSignal,
): Promise<RecoveringChannelModel> {
  const { protocol, hostname, port, pathname } = new URL(url)
  const vhost = decodeURIComponent(pathname.slice(1))
  const socket = {
    timeout: 10_000,
    signal: ending,
    ...(ca === undefined ? {} : { ca: [...ca] }),
    ...(username === undefined && password === undefined
      ? {}
      : { credentials: credentialsOf(username ?? 'guest', password) }),
    recovery: {
      initialDelay: limits.amqpRetryMs.value,
      maxDelay: retryMsMax,
      jitter: 0.5,
      waitForConnect: false,
    },
  }
  return connect(
    {
      protocol: protocol.slice(0, -1),
      hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
      ...(port === '' ? {} : { port: Number(port) }),
      ...(vhost === '' ? {} : { vhost }),
      heartbeat: 30,
      maxFrameSize: limits.frameBytesMax.value,
    },
    socket,
  )
}

/**
 * Closes a connection. The library waits for the server's response, also after the connection was lost; this
 * ends then, and after `amqpCloseMs`. A socket that does not respond, or is not connected yet, would keep the
 * process running, so it is destroyed.
 * @param ending of the connection.
 */
export async function closeAmqp(
  connection: RecoveringChannelModel,
  model: ChannelModel | undefined,
  ending: AbortController,
): Promise<void> {
  const { promise: lost, resolve } = Promise.withResolvers<void>()
  model?.once('close', () => resolve())
  const timer = setTimeout(resolve, limits.amqpCloseMs.value)
  await Promise.race([connection.close(), lost])
  clearTimeout(timer)
  ending.abort()
}

/** SASL PLAIN [RFC 4616]. */
const credentialsOf = (username: string, password: AmqpConnectionSettings['password']) => ({
  mechanism: 'PLAIN',
  response: () => Buffer.from(`\0${username}\0${password?.() ?? ''}`),
})
