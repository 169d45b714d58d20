/**
 * The route by which gateways behind NAT open a tunnel to this one: a WebSocket upgrade request whose headers
 * identify the gateway.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Tunnels } from '#federation/tunnels.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { isTunnelled, tunnelUri } from '#ngsi-ld/values/tunnel-uri.ts'
import type { ServeTunnelled } from './tunnel-requests.ts'

const tunnelPath = '/selvedge/v1/tunnel'

export interface TunnelRoutePorts {
  readonly tunnels: Pick<Tunnels, 'admit' | 'take'>
  readonly serve: ServeTunnelled
  /** The pseudonym of this gateway in Via, per tenant. */
  readonly alias: (tenant: string) => string
}

export function createTunnelTable({ tunnels, serve, alias }: TunnelRoutePorts) {
  return {
    [tunnelPath]: {
      GET(c: HttpContext): Response {
        const { upgrade, incoming } = c.env
        if (upgrade === undefined)
          throw new GatewayError('http.not-acceptable', 'a tunnel is a WebSocket', {
            available: ['websocket'],
          })
        const name = headerOf(c, 'selvedge-alias')
        if (name === undefined || !isTunnelled(tunnelUri(name)))
          throw badRequestData('is required: the pseudonym that the gateway uses in Via', 'Selvedge-Alias')
        if (name === alias(''))
          throw badRequestData('is the pseudonym of this gateway itself', 'Selvedge-Alias')
        const secret = headerOf(c, 'selvedge-secret') ?? ''
        if (!/^[\x21-\x7e]{16,256}$/.test(secret))
          throw badRequestData(
            'is required: a secret of the gateway, 16 to 256 printable characters',
            'Selvedge-Secret',
          )
        const instance = headerOf(c, 'selvedge-instance') ?? ''
        const from = incoming.socket.remoteAddress ?? 'unknown'
        tunnels.admit({ alias: name, from }, secret)
        upgrade.accept(
          (socket) => tunnels.take(socket, { alias: name, instance, from, wire: incoming.socket }, serve),
          {
            messageBytesMax: limits.tunnelMessageBytesMax.value,
            headers: [`Selvedge-Alias: ${alias('')}`],
          },
        )
        return new Response(null, { status: 204 })
      },
    },
  }
}
