/**
 * The gateways with an open tunnel to this one, by pseudonym. Each pseudonym has one connection: a new one
 * replaces the old one, which is probably dead. If the new one is another process, a warning is logged,
 * because two gateways may share an identity.
 */

import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { GatewayError } from '#base/register/errors.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { tunnelled } from '#ngsi-ld/values/tunnel-uri.ts'
import type { PeerAnswer, PeerRequest } from './peer.ts'
import {
  createTunnelEnd,
  displacedCode,
  type TunnelEnd,
  type TunnelEndPorts,
  type TunnelSocket,
  type TunnelWire,
} from './tunnel-end.ts'
import type { TunnelNames } from './tunnel-names.ts'

/** A gateway that opens a tunnel. */
export interface TunnelClient {
  /** The pseudonym of the gateway. */
  readonly alias: string
  /** Identifies its process; changes with each start. */
  readonly instance: string
  /** Its address. */
  readonly from: string
  readonly wire: TunnelWire
}

export interface TunnelStatus {
  readonly alias: string
  readonly from: string
  /** DateTime. */
  readonly since: string
  readonly inFlight: number
}

export interface TunnelsPorts extends Instruments {
  readonly names: TunnelNames
}

interface Open {
  readonly client: TunnelClient
  readonly end: TunnelEnd
  readonly since: number
}

export type Tunnels = ReturnType<typeof createTunnels>

export function createTunnels({ clock, log, metrics, names }: TunnelsPorts) {
  const open = new Map<string, Open>()
  const requests = metrics.counter('selvedge_tunnel_requests_total')
  metrics.gauge('selvedge_tunnels', () => open.size)

  return Object.freeze({
    /**
     * Admits a gateway under its name, which it owns from then on.
     *
     * @throws http.busy if the limit of tunnels is reached; tunnel.name-taken if the name belongs to another
     * gateway.
     */
    admit({ alias, from }: Pick<TunnelClient, 'alias' | 'from'>, secret: string): void {
      if (!open.has(alias) && open.size >= limits.tunnelsMax.value)
        throw new GatewayError('http.busy', `too many tunnels are open (${open.size}); retry later`)
      const owner = names.prove(alias, secret, from)
      if (owner === undefined) return
      const { since } = owner
      log.warn('tunnel.refused', { alias, from, since, owner: owner.from })
      throw new GatewayError(
        'tunnel.name-taken',
        `the name ${alias} has belonged to another gateway since ${since}`,
      )
    },
    /** @param serve answers the requests of the gateway. */
    take(socket: TunnelSocket, client: TunnelClient, serve: TunnelEndPorts['serve']) {
      const { alias, instance, from, wire } = client
      const before = open.get(alias)
      const facts = { alias, from }
      const end = createTunnelEnd(socket, {
        serve,
        wire,
        beatMs: limits.tunnelBeatMs.value,
        onClose(code, reason) {
          if (open.get(alias)?.end !== end) return
          open.delete(alias)
          log.info('tunnel.down', { ...facts, code, reason })
        },
      })
      open.set(alias, { client, end, since: clock.now() })
      if (before === undefined) return log.info('tunnel.up', facts)
      before.end.close(displacedCode, `replaced by another connection of ${alias} from ${from}`)
      if (before.client.instance === instance) return log.info('tunnel.up', { ...facts, again: true })
      log.warn('tunnel.taken-over', { ...facts, before: before.client.from })
    },
    /** Sends a request to the gateway named in the URL. Never rejects. */
    async exchange({ method, url, headers, body, timeoutMs }: PeerRequest): Promise<PeerAnswer> {
      const target = tunnelled(url)
      const found = target === undefined ? undefined : open.get(target.alias)
      if (target === undefined || found === undefined)
        return { failure: 'unreachable', reason: `${target?.alias ?? url} has no open tunnel` }
      requests.value++
      const text = body === undefined ? '' : body.toString()
      return found.end.exchange({ method, path: target.path, headers: { ...headers }, body: text }, timeoutMs)
    },
    statuses: (): readonly TunnelStatus[] =>
      [...open.values()].map(({ client: { alias, from }, end, since }) => ({
        alias,
        from,
        since: msToDateTime(since),
        inFlight: end.inFlight(),
      })),
    close(): void {
      for (const { end } of open.values()) end.close(1001, 'the gateway stops')
    },
  })
}
