/**
 * A tunnel lets a centre reach a gateway to which it cannot connect: the gateway opens a WebSocket, through
 * which both sides send requests. A closed connection is reopened after a pause. The pause doubles each time,
 * up to `limits.tunnelPauseMsMax`. It is short again after a connection that lasted `limits.tunnelStableMs`.
 * An unreachable centre is probed by connecting.
 */

import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { limits } from '#base/limits/limits.ts'
import { lookupRemote } from '#base/load/loopback.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { productToken } from '#base/register/version.ts'
import { probeIntervalMs } from '#delivery/breaker.ts'
import { originOf, probe, shownUri } from '#delivery/probe.ts'
import {
  createTunnelEnd,
  displacedCode,
  type TunnelEnd,
  type TunnelEndPorts,
  type TunnelWire,
} from '#federation/tunnel-end.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { Centre } from './centre.ts'
import { createPauses } from './pause.ts'

export interface TunnelPorts extends ClockAndLog {
  readonly centre: Pick<Centre, 'headers'>
  readonly serve: TunnelEndPorts['serve']
  readonly random: () => number
}

export interface TunnelSettings {
  /** The URL of the centre; ends in /ngsi-ld/v1. */
  readonly url: string
  readonly alias: string
  /** The id of this process. */
  readonly instance: string
  /** Proves to the centre that the name belongs to this gateway. */
  readonly secret: string
  readonly beatMs: number
  readonly allowsLoopback: boolean
  readonly ca: readonly string[] | undefined
}

export interface TunnelState {
  readonly centre: string
  readonly state: 'open' | 'closed'
  /** Why it is closed. */
  readonly reason?: string | undefined
  /** DateTime of the last change of state. */
  readonly since: string
}

/** Why a connection ended, and how long it lasted. */
interface Ended {
  readonly reason: string
  readonly isUnreachable: boolean
  readonly lastedMs: number
}

export type Tunnel = ReturnType<typeof createTunnel>

export function createTunnel(ports: TunnelPorts, settings: TunnelSettings) {
  const { centre, clock, random, log } = ports
  const { url, alias, instance, secret, beatMs, allowsLoopback, ca } = settings
  const facts = { centre: shownUri(url), alias }
  const address = originOf(url)?.address
  const pauses = createPauses()
  let open: { readonly end: TunnelEnd; readonly alias: string } | undefined
  let connecting: WebSocket | undefined
  let since = clock.now()
  let reason: string | undefined = 'not opened yet'

  /** Opens a connection; resolves when it has ended. */
  const hold = (): Promise<Ended> =>
    new Promise((resolve) => {
      let startedAt: number | undefined
      let remoteAlias = ''
      let wire: TunnelWire | undefined
      let failed: { readonly reason: string; readonly isUnreachable: boolean } | undefined
      const socket: WebSocket = new WebSocket(
        url.replace(/^http/, 'ws').replace(/\/ngsi-ld\/v1$/, '/selvedge/v1/tunnel'),
        {
          headers: {
            ...centre.headers(),
            'user-agent': productToken,
            'selvedge-alias': alias,
            'selvedge-instance': instance,
            'selvedge-secret': secret,
          },
          handshakeTimeout: limits.downwardTimeoutMs.value,
          maxPayload: limits.tunnelMessageBytesMax.value,
          perMessageDeflate: false,
          followRedirects: false,
          ...(allowsLoopback ? {} : { lookup: lookupRemote }),
          ...(ca === undefined ? {} : { ca: [...ca] }),
        },
      )
      connecting = socket
      socket.on('upgrade', ({ headers, socket: connection }) => {
        wire = connection
        remoteAlias = String(headers['selvedge-alias'] ?? '')
      })
      socket.on('unexpected-response', (request, response) => {
        void refusalOf(response).then((reason) => {
          failed = { reason, isUnreachable: false }
          request.destroy()
          socket.terminate()
        })
      })
      socket.on('error', (error) => {
        failed ??= { reason: error.message, isUnreachable: startedAt === undefined }
      })
      socket.on('open', () => {
        if (pauses.isClosed() || wire === undefined) return socket.close(1001)
        startedAt = clock.monotonic()
        const end = createTunnelEnd(socket, { serve: ports.serve, wire, beatMs, onClose: () => undefined })
        setState({ end, alias: remoteAlias }, undefined)
      })
      socket.on('close', (code, text) => {
        const isDisplaced = code === displacedCode
        if (isDisplaced) log.warn('tunnel.displaced', { ...facts, reason: text.toString() })
        resolve({
          reason: `${code} ${text.toString()}`.trimEnd(),
          isUnreachable: false,
          lastedMs: startedAt === undefined || isDisplaced ? 0 : clock.monotonic() - startedAt,
          ...failed,
        })
      })
    })

  function setState(now: typeof open, why: string | undefined): void {
    if (now !== undefined) log.info('tunnel.up', facts)
    else if (open !== undefined || reason === 'not opened yet')
      log.warn('tunnel.down', { ...facts, reason: why })
    if ((now === undefined) !== (open === undefined)) since = clock.now()
    open = now
    reason = why
  }

  async function awaitReachable(): Promise<void> {
    const startedAt = clock.monotonic()
    while (!pauses.isClosed() && address !== undefined && !(await probe(address)))
      await pauses.sleep(probeIntervalMs(clock.monotonic() - startedAt))
  }

  async function run(): Promise<void> {
    let tries = 0
    while (!pauses.isClosed()) {
      const end = await hold().catch((error: unknown): Ended => {
        return { reason: (error as Error).message, isUnreachable: false, lastedMs: 0 }
      })
      setState(undefined, end.reason)
      tries = end.lastedMs >= limits.tunnelStableMs.value ? 0 : tries + 1
      if (end.isUnreachable) await awaitReachable()
      const pauseMs = Math.min(limits.tunnelPauseMsMax.value, firstPauseMs * 2 ** Math.min(tries, 20))
      await pauses.sleep(pauseMs * (0.5 + random() / 2))
    }
  }
  const running = run()

  return Object.freeze({
    status: (): TunnelState => ({
      centre: facts.centre,
      state: open === undefined ? 'closed' : 'open',
      reason,
      since: msToDateTime(since),
    }),
    /** The other end and its name; undefined while closed. */
    open: (): { readonly end: TunnelEnd; readonly alias: string } | undefined => open,
    async close(): Promise<void> {
      const over = pauses.close(running)
      if (open === undefined) connecting?.terminate()
      else open.end.close(1001, 'the gateway stops')
      await over
    },
  })
}

/** The reason of a refused connection, with the centre's detail. */
async function refusalOf(response: IncomingMessage): Promise<string> {
  const answered = `answered ${response.statusCode}`
  const chunks: Buffer[] = []
  let room = limits.tunnelRefusalBytesMax.value
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      room -= chunk.length
      if (room < 0) return answered
    }
    const { detail } = JSON.parse(Buffer.concat(chunks).toString()) as { detail?: unknown }
    return typeof detail === 'string' ? `${answered}: ${detail.slice(0, detailCharacters)}` : answered
  } catch {
    return answered
  }
}

const detailCharacters = 300
const firstPauseMs = 500
