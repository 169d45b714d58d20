/** Stored responses in memory, bounded by bytes; the least recently used is evicted. */
import { limits } from '#base/limits/limits.ts'
import type { StoredResponse } from './stored-response.ts'

export type MemoryStore = ReturnType<typeof createMemoryStore>

export function createMemoryStore() {
  /** The least recently used first. */
  const stored = new Map<string, StoredResponse>()
  let bytes = 0

  function remove(key: string): void {
    const one = stored.get(key)
    if (one === undefined) return
    stored.delete(key)
    bytes -= sizeOf(one)
  }

  return Object.freeze({
    get(key: string): StoredResponse | undefined {
      const one = stored.get(key)
      if (one === undefined) return undefined
      stored.delete(key)
      stored.set(key, one)
      return one
    },
    set(key: string, response: StoredResponse): void {
      remove(key)
      stored.set(key, response)
      bytes += sizeOf(response)
      while (bytes > limits.orchestratorCacheBytes.value) remove(stored.keys().next().value!)
    },
    remove,
    status: () => ({ responses: stored.size, bytes }),
  })
}

/** Bytes of the body, and an estimate of the rest. */
const sizeOf = ({ body, headers }: StoredResponse): number =>
  body.length +
  512 +
  Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
