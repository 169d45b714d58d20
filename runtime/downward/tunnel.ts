/**
 * A tunnel that this gateway holds open to a centre nobody behind which could connect to it: a WebSocket that it opens, through which
 * the centre asks it and it tells the centre. A connection that ends is opened again, after pauses that grow until one
 * has lasted. A centre that cannot be reached is probed by connecting.
 */

import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { limits } from '#base/limits/limits.ts'
import { lookupRemote } from '#base/load/loopback.ts'
import type { Log } from '#base/register/log.ts'
import { productToken } from '#base/register/version.ts'
import type { Clock } from '#base/time/clock.ts'
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

export interface TunnelPorts {
  readonly centre: Pick<Centre, 'headers'>
  readonly serve: TunnelEndPorts['serve']
  readonly clock: Clock
  readonly dice: () => number
  readonly log: Log
}

export interface TunnelSettings {
  /** Of the centre; ends in /ngsi-ld/v1. */
  readonly url: string
  readonly alias: string
  /** Of this process. */
  readonly instance: string
  /** By which the centre knows that the name is ours. */
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
  /** DateTime since when it is as it is. */
  readonly since: string
}

export interface Tunnel {
  status(): TunnelState
  /** The other end, and what it calls itself; undefined while it is closed. */
  open(): { readonly end: TunnelEnd; readonly alias: string } | undefined
  close(): Promise<void>
}

/** Why a connection ended, and whether it lasted. */
interface Ended {
  readonly reason: string
  readonly isUnreachable: boolean
  readonly lastedMs: number
}

export function createTunnel(ports: TunnelPorts, settings: TunnelSettings): Tunnel {
  const { centre, clock, dice, log } = ports
  const { url, alias, instance, secret, beatMs, allowsLoopback, ca } = settings
  const facts = { centre: shownUri(url), alias }
  const address = originOf(url)?.address
  const pauses = createPauses()
  let open: { readonly end: TunnelEnd; readonly alias: string } | undefined
  let connecting: WebSocket | undefined
  let since = clock.now()
  let reason: string | undefined = 'not opened yet'

  /** Opens a connection and settles when it ended. */
  const hold = (): Promise<Ended> =>
    new Promise((resolve) => {
      let begunAt: number | undefined
      let theirs = ''
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
        theirs = String(headers['selvedge-alias'] ?? '')
      })
      socket.on('unexpected-response', (request, response) => {
        void refusalOf(response).then((reason) => {
          failed = { reason, isUnreachable: false }
          request.destroy()
          socket.terminate()
        })
      })
      socket.on('error', (error) => {
        failed ??= { reason: error.message, isUnreachable: begunAt === undefined }
      })
      socket.on('open', () => {
        if (pauses.isClosed() || wire === undefined) return socket.close(1001)
        begunAt = clock.monotonic()
        const end = createTunnelEnd(socket, { serve: ports.serve, wire, beatMs, onClose: () => undefined })
        turn({ end, alias: theirs }, undefined)
      })
      socket.on('close', (code, text) => {
        const isDisplaced = code === displacedCode
        if (isDisplaced) log.warn('tunnel.displaced', { ...facts, reason: text.toString() })
        resolve({
          reason: `${code} ${text.toString()}`.trimEnd(),
          isUnreachable: false,
          lastedMs: begunAt === undefined || isDisplaced ? 0 : clock.monotonic() - begunAt,
          ...failed,
        })
      })
    })

  function turn(now: typeof open, why: string | undefined): void {
    if (now !== undefined) log.info('tunnel.up', facts)
    else if (open !== undefined || reason === 'not opened yet')
      log.warn('tunnel.down', { ...facts, reason: why })
    if ((now === undefined) !== (open === undefined)) since = clock.now()
    open = now
    reason = why
  }

  async function reach(): Promise<void> {
    const startedAt = clock.monotonic()
    while (!pauses.isClosed() && address !== undefined && !(await probe(address)))
      await pauses.rest(probeIntervalMs(clock.monotonic() - startedAt))
  }

  async function run(): Promise<void> {
    let tries = 0
    while (!pauses.isClosed()) {
      const ended = await hold().catch((error: unknown): Ended => {
        return { reason: (error as Error).message, isUnreachable: false, lastedMs: 0 }
      })
      turn(undefined, ended.reason)
      tries = ended.lastedMs >= limits.tunnelStableMs.value ? 0 : tries + 1
      if (ended.isUnreachable) await reach()
      const pauseMs = Math.min(limits.tunnelPauseMsMax.value, firstPauseMs * 2 ** Math.min(tries, 20))
      await pauses.rest(pauseMs * (0.5 + dice() / 2))
    }
  }
  const running = run()

  return Object.freeze({
    status: () => ({
      centre: facts.centre,
      state: open === undefined ? 'closed' : 'open',
      reason,
      since: msToDateTime(since),
    }),
    open: () => open,
    async close() {
      const over = pauses.close(running)
      if (open === undefined) connecting?.terminate()
      else open.end.close(1001, 'the gateway stops')
      await over
    },
  } satisfies Tunnel)
}

/** Why a connection is refused, with what the centre says about it. */
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
