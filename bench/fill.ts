/**
 * Fills a gateway with stations through its public interface, as a client would: batches of creates, a few at a time.
 */
import { station } from './site.ts'

const batchSize = 500
const inFlight = 4

/** Creates stations 0 to `count` - 1. Returns how many were created per second. */
export async function fill(httpPort: number, count: number): Promise<number> {
  const startedAt = performance.now()
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const from = next
      next += batchSize
      const batch = Array.from({ length: Math.min(batchSize, count - from) }, (_, i) => station(from + i))
      const answer = await fetch(`http://127.0.0.1:${httpPort}/ngsi-ld/v1/entityOperations/create`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(batch),
      })
      if (answer.status !== 201)
        throw new TypeError(`create answered ${answer.status}: ${await answer.text()}`)
      await answer.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  return count / ((performance.now() - startedAt) / 1000)
}
