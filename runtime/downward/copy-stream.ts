/**
 * Listens to the notifications of a subscription at another Selvedge, which this gateway comes for by WebSocket. Each is taken
 * before it is confirmed, one after the other; what was not confirmed is told again to whoever comes next.
 */

import { WebSocket } from 'ws'
import { limits } from '#base/limits/limits.ts'
import { lookupRemote } from '#base/load/loopback.ts'
import { productToken } from '#base/register/version.ts'
import { createPulse } from '#federation/tunnel-end.ts'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'

export interface StreamSettings {
  /** Of the subscription; http or https. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly allowsLoopback: boolean
  readonly ca: readonly string[] | undefined
}

export interface CopyStream {
  /** Settles with the reason when the stream is over. Never rejects. */
  readonly ended: Promise<string>
  close(): void
}

/** `take` gets a notification; when it fails the stream ends, and the notification comes again with the next. */
export function listen(
  { url, headers, allowsLoopback, ca }: StreamSettings,
  { take, opened }: { take: (notification: JsonObject) => Promise<void>; opened: () => void },
): CopyStream {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/notifications`, {
    headers: { ...headers, 'user-agent': productToken },
    handshakeTimeout: limits.downwardTimeoutMs.value,
    maxPayload: limits.tunnelMessageBytesMax.value,
    perMessageDeflate: false,
    followRedirects: false,
    ...(allowsLoopback ? {} : { lookup: lookupRemote }),
    ...(ca === undefined ? {} : { ca: [...ca] }),
  })
  let reason: string | undefined
  let taking = Promise.resolve()
  let waiting = 0
  // The other side gives a sign of life at each beat of its own.
  let isAlive = (): boolean => true
  const watch = setInterval(() => {
    // While we ourselves do not read, nothing can come.
    if (socket.isPaused || isAlive()) return
    reason ??= 'no sign of life'
    socket.terminate()
  }, quietMs())

  async function handle(text: string): Promise<void> {
    const { id, notification } = JSON.parse(text) as { id: string; notification: JsonObject }
    if (isObject(notification)) await take(notification)
    // Of many that came together the last one is confirmed: that stands for all before it.
    if (--waiting === 0 && socket.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({ confirmed: id }))
  }

  socket.on('open', opened)
  socket.on('upgrade', ({ socket: connection }) => {
    isAlive = createPulse(connection)
  })
  socket.on('message', (data: Buffer) => {
    waiting++
    if (waiting >= limits.copyNotificationsWaitingMax.value) socket.pause()
    taking = taking
      .then(() => handle(data.toString()))
      .then(() => socket.resume())
      .catch((error: unknown) => {
        reason ??= (error as Error).message
        socket.terminate()
      })
  })
  socket.on('error', (error) => {
    reason ??= error.message
  })
  const ended = new Promise<string>((resolve) => {
    socket.on('close', (code, text) => {
      clearInterval(watch)
      void taking.then(() => resolve(reason ?? `${code} ${text.toString()}`.trimEnd()))
    })
  })
  return Object.freeze({
    ended,
    close() {
      reason ??= 'closed here'
      socket.close(1000)
      setTimeout(() => socket.terminate(), limits.tunnelCloseMs.value).unref()
    },
  })
}

/** As often as there are signs of life. */
const quietMs = (): number => limits.streamBeatMs.value
