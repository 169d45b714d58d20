/** How much is asked for at once: what a broker gives, and not less because it refused something else. */
import { expect, it } from 'vitest'
import type { BrokerAnswer, BrokerPort } from '#contract'
import { createBackend } from './backend.ts'

/** A broker that refuses every query, or pages of more than 500, and what it was asked. */
function brokerThat(refuses: { everything: boolean }) {
  const sizes: (string | null)[] = []
  const port: BrokerPort = {
    address: 'http://broker',
    async exchange({ path }): Promise<BrokerAnswer> {
      const size = new URL(path, 'http://broker').searchParams.get('limit')
      sizes.push(size)
      const isRefused = refuses.everything || Number(size) > 500
      return { status: isRefused ? 403 : 200, headers: {}, text: isRefused ? '{}' : '[]' }
    },
  }
  return { port, sizes }
}

it('keeps to the size that was given, and not to one that was refused like all others', async () => {
  const refuses = { everything: true }
  const { port, sizes } = brokerThat(refuses)
  const backend = createBackend(port, Date.now)
  const ask = async (): Promise<(string | null)[]> => {
    sizes.length = 0
    const asking = { headers: {}, signal: new AbortController().signal, until: Date.now() + 10_000 }
    await backend.candidates(['type=T'], asking, async () => undefined)
    return [...sizes]
  }
  expect(await ask()).toEqual(['1000', '500', '100'])
  refuses.everything = false
  expect(await ask()).toEqual(['1000', '500'])
  expect(await ask()).toEqual(['500'])
})
