/**
 * Decides whether a broker that answers can also notify this gateway. Evidence: delivery failures that the
 * broker reports, and a callback address that only this machine can reach. Pure functions.
 */

import { isLoopback } from '#base/load/loopback.ts'

/** Delivery failures of a broker. */
export interface Notifying {
  /** Last delivery failure by purpose, ISO 8601. Purposes that work now are omitted. */
  readonly undelivered?: Readonly<Record<string, string>>
  /** The failures, in the same form, after which a full read succeeded. */
  readonly madeGood?: Readonly<Record<string, string>>
}

export interface Silence {
  /** Advice for the operator. */
  readonly reason: string
  /** Whether changes may have been missed since the last full read. */
  readonly isAged: boolean
}

/**
 * Returns undefined if the broker can notify this gateway, as far as is known.
 * @param plugin whose setting `callbackUrl` decides that address.
 * @param base the callback address.
 * @param isHidden whether the broker's host cannot reach that address.
 */
export function silenceOf(
  { undelivered = {}, madeGood = {} }: Notifying,
  { plugin, base, isHidden }: { readonly plugin: string; readonly base: string; readonly isHidden: boolean },
): Silence | undefined {
  const failures = Object.entries(undelivered)
  if (failures.length === 0 && !isHidden) return undefined
  const isMissed = failures.some(([purpose, at]) => madeGood[purpose] !== at)
  return {
    reason: `it cannot notify this gateway at ${base}; set ${plugin}.callbackUrl`,
    isAged: isHidden || isMissed,
  }
}

/** Time of the last failure; undefined if there is none. */
export const undeliveredAt = ({ undelivered = {} }: Notifying): string | undefined =>
  Object.values(undelivered).toSorted().at(-1)

/** Whether an address is local to this machine while the broker is elsewhere. */
export const isHiddenFrom = (broker: string, address: string): boolean => isHere(address) && !isHere(broker)

const isHere = (address: string): boolean => isLoopback(URL.parse(address)?.hostname ?? '')
