/**
 * The chain of brokers that a request went through, as Via tells it [RFC 9110 7.6.3; GS CIM 009, 6.3.18], and as the origin
 * of what it changed: pseudonyms, the first that had it first. Pure.
 */

/** By whose hand something was changed that came through other brokers. */
export type ViaOrigin = `via:${string}`

/** The pseudonyms of a Via header. */
export function pseudonymsOf(via: string | readonly string[] | undefined): readonly string[] {
  const text = typeof via === 'string' ? via : (via ?? []).join(',')
  return text.split(',').flatMap((hop) => hop.trim().split(/\s+/)[1] ?? [])
}

/** Who was where twice is named once; of a long chain the first ones and the last ones are kept. */
export function viaOrigin(pseudonyms: readonly string[], most: number): ViaOrigin | undefined {
  const all = [...new Set(pseudonyms)]
  const some = all.length > most ? [all[0]!, ...all.slice(1 - most)] : all
  return some.length === 0 ? undefined : `via:${some.join(',')}`
}

/** The chain of an origin as text, as it is kept with what was changed; undefined where it began here. */
export const viaFrom = (origin: string): string | undefined =>
  origin.startsWith('via:') ? origin.slice(4) : undefined

/** The pseudonyms of a kept chain. */
export const chainOf = (heard: string | undefined): readonly string[] => heard?.split(',') ?? []

/** Via of a request that passes on what came by a chain. The protocol is named, since some brokers fail where it is not. */
export const viaHeader = (heard: string | undefined, alias: string): string =>
  [...chainOf(heard), alias].map((name) => `HTTP/1.1 ${name}`).join(', ')
