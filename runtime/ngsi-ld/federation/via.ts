/**
 * The Via chain of a request [RFC 9110 7.6.3; GS CIM 009, 6.3.18], also as the origin of the changes it made:
 * pseudonyms of brokers, beginning with the first in the chain. Pure. A request that passed through this
 * gateway before is rejected in `http/request/distributed-request.ts`; one that passed through the
 * orchestrator, in `host/request-forwarding.ts`.
 */

/** Origin of a change that arrived through other brokers. */
export type ViaOrigin = `via:${string}`

/** The pseudonyms of a Via header. */
export function pseudonymsOf(via: string | readonly string[] | undefined): readonly string[] {
  const text = typeof via === 'string' ? via : (via ?? []).join(',')
  return text.split(',').flatMap((hop) => hop.trim().split(/\s+/)[1] ?? [])
}

/** Removes repeated pseudonyms; of a long chain it keeps the first and the last ones. */
export function viaOrigin(pseudonyms: readonly string[], most: number): ViaOrigin | undefined {
  const all = [...new Set(pseudonyms)]
  const some = all.length > most ? [all[0]!, ...all.slice(1 - most)] : all
  return some.length === 0 ? undefined : `via:${some.join(',')}`
}

/** The chain of an origin as text, as stored with the change; undefined if the change originated here. */
export const viaFrom = (origin: string): string | undefined =>
  origin.startsWith('via:') ? origin.slice(4) : undefined

/** The pseudonyms of a stored chain. */
export const chainOf = (via: string | undefined): readonly string[] => via?.split(',') ?? []

/** An entry of a Via header. It includes the protocol, because some brokers fail without it. */
const hop = (alias: string): string => `HTTP/1.1 ${alias}`

/** The Via header for sending a change with a stored chain. */
export const viaHeader = (via: string | undefined, alias: string): string =>
  [...chainOf(via), alias].map(hop).join(', ')

/** The Via header for forwarding a request; the received header stays as it is. */
export const appendedVia = (received: string | readonly string[] | undefined, alias: string): string =>
  [...[received ?? []].flat(), hop(alias)].join(', ')
