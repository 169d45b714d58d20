/**
 * The gateways that hold a tunnel open to this one, by what they call themselves. One name has one connection: who comes
 * later takes the place of who came before, since that one is probably dead; where it was another process, that is told,
 * for two gateways may have the same identity.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
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

/** Who holds a tunnel open. */
export interface Visitor {
  /** The pseudonym of the gateway. */
  readonly alias: string
  /** Of its process: another one each time it starts. */
  readonly instance: string
  /** Address it comes from. */
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

export interface Tunnels {
  /**
   * Whether a gateway may have its name, which is its own from then on.
   * @throws http.busy when there is no room for another gateway; tunnel.name-taken when the name is that of another one.
   */
  admit(visitor: Pick<Visitor, 'alias' | 'from'>, secret: string): void
  /** `serve` answers what the gateway asks. */
  take(socket: TunnelSocket, visitor: Visitor, serve: TunnelEndPorts['serve']): void
  /** Asks the gateway whose name the address holds. Never rejects. */
  exchange(request: PeerRequest): Promise<PeerAnswer>
  statuses(): readonly TunnelStatus[]
  close(): void
}

export interface TunnelsPorts {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly names: TunnelNames
}

interface Open {
  readonly visitor: Visitor
  readonly end: TunnelEnd
  readonly since: number
}

export function createTunnels({ clock, log, metrics, names }: TunnelsPorts): Tunnels {
  const open = new Map<string, Open>()
  const requests = metrics.counter('selvedge_tunnel_requests_total')
  metrics.gauge('selvedge_tunnels', () => open.size)

  return Object.freeze({
    admit({ alias, from }, secret) {
      if (!open.has(alias) && open.size >= limits.tunnelsMax.value)
        throw new GatewayError('http.busy', `${open.size} gateways hold a tunnel open`)
      const owner = names.prove(alias, secret, from)
      if (owner === undefined) return
      const { since } = owner
      log.warn('tunnel.refused', { alias, from, since, owner: owner.from })
      throw new GatewayError(
        'tunnel.name-taken',
        `the name ${alias} belongs to another gateway since ${since}`,
      )
    },
    take(socket, visitor, serve) {
      const { alias, instance, from, wire } = visitor
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
      open.set(alias, { visitor, end, since: clock.now() })
      if (before === undefined) return log.info('tunnel.up', facts)
      before.end.close(displacedCode, `another connection of ${alias} came from ${from}`)
      if (before.visitor.instance === instance) return log.info('tunnel.up', { ...facts, again: true })
      log.warn('tunnel.taken-over', { ...facts, before: before.visitor.from })
    },
    async exchange({ method, url, headers, body, timeoutMs }) {
      const target = tunnelled(url)
      const found = target === undefined ? undefined : open.get(target.alias)
      if (target === undefined || found === undefined)
        return { failure: 'unreachable', reason: `${target?.alias ?? url} holds no tunnel open` }
      requests.value++
      const text = body === undefined ? '' : body.toString()
      return found.end.exchange({ method, path: target.path, headers: { ...headers }, body: text }, timeoutMs)
    },
    statuses: () =>
      [...open.values()].map(({ visitor: { alias, from }, end, since }) => ({
        ...{ alias, from, since: msToDateTime(since) },
        inFlight: end.asking(),
      })),
    close() {
      for (const { end } of open.values()) end.close(1001, 'the gateway stops')
    },
  } satisfies Tunnels)
}
