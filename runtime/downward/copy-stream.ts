/**
 * Receives the notifications of a subscription at another Selvedge over a WebSocket. Notifications are stored
 * one after the other, each before it is acknowledged; the centre repeats unacknowledged ones on the next
 * connection.
 */

import { WebSocket } from 'ws'
import { limits } from '#base/limits/limits.ts'
import { lookupRemote } from '#base/load/loopback.ts'
import { productToken } from '#base/register/version.ts'
import { createLivenessCheck } from '#federation/tunnel-end.ts'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'

export interface StreamSettings {
  /** The http or https URL of the subscription. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly allowsLoopback: boolean
  readonly ca: readonly string[] | undefined
}

export interface CopyStream {
  /** Resolves with the reason when the stream ends. Never rejects. */
  readonly ended: Promise<string>
  close(): void
}

/**
 * Opens the stream. When `onNotification` fails, the stream ends, and the notification is repeated on the
 * next one.
 */
export function listen(
  { url, headers, allowsLoopback, ca }: StreamSettings,
  {
    onNotification,
    onOpen,
  }: { onNotification: (notification: JsonObject) => Promise<void>; onOpen: () => void },
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
  let handling = Promise.resolve()
  let waiting = 0
  // The centre sends a heartbeat at each interval.
  let isAlive = (): boolean => true
  const watch = setInterval(() => {
    // While reading is paused, no heartbeat can arrive.
    if (socket.isPaused || isAlive()) return
    reason ??= 'no heartbeat'
    socket.terminate()
  }, quietMs())

  async function handle(text: string): Promise<void> {
    const { id, notification } = JSON.parse(text) as { id: string; notification: JsonObject }
    if (isObject(notification)) await onNotification(notification)
    // Only the last of several notifications is acknowledged; that covers the earlier ones.
    if (--waiting === 0 && socket.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({ confirmed: id }))
  }

  socket.on('open', onOpen)
  socket.on('upgrade', ({ socket: connection }) => {
    isAlive = createLivenessCheck(connection)
  })
  socket.on('message', (data: Buffer) => {
    waiting++
    if (waiting >= limits.copyNotificationsWaitingMax.value) socket.pause()
    handling = handling
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
      void handling.then(() => resolve(reason ?? `${code} ${text.toString()}`.trimEnd()))
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

/** The heartbeat interval. */
const quietMs = (): number => limits.streamBeatMs.value
