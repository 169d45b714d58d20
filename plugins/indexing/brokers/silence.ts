/**
 * Whether a broker that answers us can tell us, too: it says of its subscriptions when notifying failed, and nobody elsewhere
 * reaches an address that is this machine alone. Pure.
 */

import { isLoopback } from '#base/load/loopback.ts'

/** What is known of it. */
export interface Notifying {
  /** When it last failed to notify us for a purpose, ISO 8601; those that go well now are left out. */
  readonly undelivered?: Readonly<Record<string, string>>
  /** Failures of the same form that a reading has made good. */
  readonly madeGood?: Readonly<Record<string, string>>
}

export interface Silence {
  /** What an operator can do. */
  readonly reason: string
  /** Whether something may have been missed since it was read. */
  readonly isAged: boolean
}

/**
 * Undefined where it can notify us, as far as anybody knows.
 * @param base where it is to notify us.
 * @param isHidden whether that leads nowhere from there.
 */
export function silenceOf(
  { undelivered = {}, madeGood = {} }: Notifying,
  { base, isHidden }: { readonly base: string; readonly isHidden: boolean },
): Silence | undefined {
  const failures = Object.entries(undelivered)
  if (failures.length === 0 && !isHidden) return undefined
  const isMissed = failures.some(([purpose, at]) => madeGood[purpose] !== at)
  return {
    reason: `it cannot notify this gateway at ${base}; set indexing.callbackUrl`,
    isAged: isHidden || isMissed,
  }
}

/** The last failure; undefined where there is none. */
export const undeliveredAt = ({ undelivered = {} }: Notifying): string | undefined =>
  Object.values(undelivered).toSorted().at(-1)

/** Whether an address leads to another machine, or nowhere, from where a broker is. */
export const isHiddenFrom = (broker: string, address: string): boolean => isHere(address) && !isHere(broker)

const isHere = (address: string): boolean => isLoopback(URL.parse(address)?.hostname ?? '')
