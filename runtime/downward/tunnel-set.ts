/**
 * Opens the tunnels of the settings. Requests of a centre through its tunnel are served by the routes of this
 * gateway, with the rights granted here; notifications for a centre are sent through its tunnel.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { readOrCreateToken, requireSecretFile, trustedWith } from '#config/load/secret-files.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { retryAfterMs } from '#delivery/backoff.ts'
import type { OutgoingRequest } from '#delivery/http-endpoint.ts'
import type { Failure, Sent } from '#delivery/verdict.ts'
import { createTunnelled } from '#http/operator/tunnel-requests.ts'
import { tunnelled } from '#ngsi-ld/values/tunnel-uri.ts'
import { createCentre } from './centre.ts'
import type { DownwardPorts, TunnelledApp } from './downward-ports.ts'
import { createTunnel, type Tunnel } from './tunnel.ts'

/** @throws config.invalid when a token file cannot be read. */
export function openTunnels(
  { alias, peer, clock, random, log }: DownwardPorts,
  app: TunnelledApp,
  { tunnels, outbound, data }: Settings,
): readonly Tunnel[] {
  if (tunnels.length === 0) return []
  const name = alias('')
  const instance = randomUUID()
  const secret = readOrCreateToken(join(data, 'gateway-secret')).token
  return tunnels.map(({ url, tokenFile, allow, keepAliveSeconds }) => {
    if (tokenFile !== undefined) requireSecretFile(tokenFile)
    const centre = createCentre({ peer, clock, alias: name }, { url, tokenFile })
    const guest = { centre: url, alias: () => tunnel.open()?.alias, mayRead: allow.includes('read') }
    const tunnel: Tunnel = createTunnel(
      { centre, serve: createTunnelled(app, new Set(allow), guest), clock, random, log },
      {
        url,
        alias: name,
        instance,
        secret,
        beatMs: keepAliveSeconds * 1000,
        allowsLoopback: outbound.allowLoopback,
        ca: trustedWith(outbound.caFile),
      },
    )
    return tunnel
  })
}

/** Sends a notification. A closed tunnel reconnects by itself, and the delivery is retried. */
export async function sendThrough(tunnels: readonly Tunnel[], request: OutgoingRequest): Promise<Sent> {
  const { alias, path } = tunnelled(request.uri) ?? { alias: '', path: '/' }
  const found = tunnels.map((one) => one.open()).find((open) => open?.alias === alias)
  if (found === undefined) return failure('reset', `no tunnel to ${alias} is open`)
  const answer = await found.end.exchange(
    { method: 'POST', path, headers: { ...request.headers }, body: request.body.toString() },
    request.timeoutMs ?? limits.deliveryTimeoutMs.value,
  )
  if ('failure' in answer) return failure(answer.failure === 'timeout' ? 'timeout' : 'reset', answer.reason)
  const { status, headers } = answer
  if (status >= 200 && status < 300) return { ok: true, status }
  const wait = retryAfterMs(headers['retry-after'], 0)
  return { ...failure('status', `answered ${status}`), status, retryAfterMs: wait }
}

const failure = (kind: Failure['kind'], reason: string): Failure => ({ ok: false, kind, reason })
