/**
 * Copies of the orchestrator's data in Redis, below the prefix `selvedge:`. Nothing else there is read or
 * deleted. The data itself is on disk or in memory.
 */
import type { KeyValueStore } from '#contract'

export interface CopyName {
  readonly kind: 'subscription' | 'client' | 'cache'
  /** '' for the default one. */
  readonly tenant: string
  readonly id: string
}

export type RedisCopies = ReturnType<typeof createRedisCopies>

/** @param store undefined without Redis: nothing is copied. */
export function createRedisCopies(store: KeyValueStore | undefined) {
  return Object.freeze({
    /** @param expiresMs undefined if it does not expire. */
    put: (name: CopyName, value: object, expiresMs?: number): void =>
      store?.set(keyOf(name), JSON.stringify(value), expiresMs),
    remove: (name: CopyName): void => store?.remove(keyOf(name)),
    putResponse: (tenant: string, id: string, bytes: Buffer, expiresMs: number): void =>
      store?.set(keyOf({ kind: 'cache', tenant, id }), bytes, Math.max(1, Math.floor(expiresMs))),
    response: async (tenant: string, id: string): Promise<Buffer | undefined> =>
      store?.get(keyOf({ kind: 'cache', tenant, id })),
    /** Why there is no connection; undefined without Redis, or with a connection. */
    failure: (): string | undefined => store?.failure(),
    isUsed: store !== undefined,
  })
}

const keyOf = ({ kind, tenant, id }: CopyName): string => `selvedge:${tenant}:${kind}:${id}`
