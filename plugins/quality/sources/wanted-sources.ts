/**
 * The message brokers that streams name as their source, each with its streams. Streams whose source cannot
 * be followed are refused.
 */
import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { Stream } from '#plugins/quality/streams/stream.ts'
import {
  type AccessDetails,
  type AllowedHost,
  type AllowedHosts,
  accessOf,
  allowedHost,
} from './access-details.ts'
import type { StreamRoute } from './source.ts'

export interface WantedSourcesPorts {
  readonly streams: Iterable<Stream>
  /** The current state of an entity at the context broker. */
  readonly entityOf: (id: string) => Entity | undefined
  /** Reports an address that is not followed, or a stream whose access details have a mistake. */
  readonly refuse: (what: string, reason: string) => void
  readonly yieldIfDue: YieldIfDue
}

export interface WantedSource {
  /** The setting that allows it. */
  readonly host: AllowedHost
  readonly routes: readonly StreamRoute[]
}

/** A stream with an observation entity at the context broker is counted there, and has no source here. */
export async function wantedSources(
  { streams, entityOf, refuse, yieldIfDue }: WantedSourcesPorts,
  allowed: AllowedHosts,
): Promise<ReadonlyMap<string, WantedSource>> {
  const wanted = new Map<string, { readonly host: AllowedHost; readonly routes: StreamRoute[] }>()

  function add(stream: Stream, access: AccessDetails): void {
    const { address } = access
    const host = allowedHost(address, allowed)
    const known = wanted.get(address)
    if (host === undefined) refuse(address, 'quality.sources.hosts does not allow this broker')
    else if (known !== undefined) known.routes.push({ stream, access })
    else if (wanted.size < limits.qualitySourcesMax.value)
      wanted.set(address, { host, routes: [{ stream, access }] })
    else refuse(address, `more than ${limits.qualitySourcesMax.value} brokers`)
  }

  for (const stream of streams) {
    if (stream.observedBy !== undefined) continue
    const found = stream.services.map(entityOf).map((service) => service && accessOf(service, stream.id))
    const access = found.find((one) => typeof one === 'object') ?? found.find((one) => one !== undefined)
    if (typeof access === 'string') refuse(stream.id, access)
    else if (access !== undefined) add(stream, access)
    await yieldIfDue()
  }
  return wanted
}
