/**
 * A watch of a component at a broker, and the subscription for it. Pure. Each watch of a component has a
 * purpose of its own.
 */
import type { Json } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'

export interface Watch {
  readonly purpose: string
  /** Canonical name of the watched type. */
  readonly type: string
  /** Watched entities; all of the type if absent. */
  readonly ids?: readonly string[]
  /** Attributes to watch, for brokers that require them. */
  readonly attributes: readonly string[]
  /** Description of the subscription, for people. */
  readonly description: string
}

/** @param endpoint further members besides the address. */
export function subscriptionOf(
  { type, ids, description }: Watch,
  id: string,
  { uri, ...endpoint }: { readonly uri: string; readonly [member: string]: Json },
): JsonObject {
  return {
    id,
    type: 'Subscription',
    description,
    entities: ids === undefined ? [{ type }] : ids.map((one) => ({ id: one, type })),
    notification: { format: 'normalized', endpoint: { uri, accept: 'application/json', ...endpoint } },
  }
}
