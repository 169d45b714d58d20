/**
 * Redis as a store of copies. A command never rejects and never waits for a connection: without one there are
 * no copies. The library is loaded with the first connection.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import { requireSecretFile, trustedWith } from '#config/load/secret-files.ts'
import type { KeyValueServer, KeyValueStore } from '#contract'

type Library = typeof import('@redis/client')
type Client = ReturnType<typeof connectionTo>

/** @throws GatewayError config.invalid for an unreadable file. */
export function openRedisStore(server: KeyValueServer, ready: () => void, log: Log): KeyValueStore {
  const { url, passwordFile, caFile } = server
  const password = passwordFile === undefined ? undefined : requireSecretFile(passwordFile)
  const ca = trustedWith(caFile)
  let client: Client | undefined
  let failure: string | undefined = 'not connected yet'
  let isLogged = false
  let isClosed = false

  const failed = (error: Error): void => {
    failure = reasonOf(error)
    if (!isLogged) log.warn('plugin.redis-down', { url, reason: failure })
    isLogged = true
  }
  const connected = (): void => {
    failure = undefined
    isLogged = false
    log.info('plugin.redis-connected', { url })
    ready()
  }

  const open = async (): Promise<void> => {
    const library = await import('@redis/client')
    if (isClosed) return
    client = connectionTo(library, { ...server, password, ca })
    client.on('error', failed).on('ready', connected)
    // It reconnects by itself; each failure is an event, too.
    client.connect().catch(() => undefined)
  }
  open().catch(failed)

  /** A command whose result nobody needs. */
  const send = (command: (to: Client) => Promise<unknown>): void => {
    if (client?.isReady === true) command(client).catch(() => undefined)
  }

  return Object.freeze({
    async get(key) {
      if (client?.isReady !== true) return undefined
      const late = new AbortController()
      try {
        const value = client.get(key)
        const most = limits.redisReadMs.value
        const found = await Promise.race([value, wait(most, undefined, { signal: late.signal })])
        return found ?? undefined
      } catch {
        return undefined
      } finally {
        late.abort()
      }
    },
    set(key, value, expiresMs) {
      const options = expiresMs === undefined ? {} : { expiration: { type: 'PX', value: expiresMs } as const }
      send((to) => to.set(key, value, options))
    },
    remove: (key) => send((to) => to.del(key)),
    failure: () => failure,
    close() {
      isClosed = true
      client?.destroy()
    },
  } satisfies KeyValueStore)
}

interface Connection extends Pick<KeyValueServer, 'url' | 'username'> {
  readonly password: string | undefined
  readonly ca: readonly string[] | undefined
}

/** A client that returns values as bytes. */
function connectionTo({ createClient, RESP_TYPES }: Library, { url, username, password, ca }: Connection) {
  const reconnection = {
    connectTimeout: limits.redisConnectMs.value,
    reconnectStrategy: (retries: number) =>
      Math.min(100 * 2 ** Math.min(retries, 10), limits.redisRetryMs.value),
  }
  return createClient({
    url,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    disableOfflineQueue: true,
    commandsQueueMaxLength: limits.redisCommandsMax.value,
    socket: url.startsWith('rediss:')
      ? { ...reconnection, tls: true, ...(ca && { ca: [...ca] }) }
      : reconnection,
  }).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
}

/** An AggregateError has no message of its own. */
const reasonOf = (error: Error): string => {
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : [error]
  return first?.message ?? error.message
}
