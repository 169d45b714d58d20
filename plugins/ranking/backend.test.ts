/**
 * How much is asked for at once: what a broker gives, and not less because it refused something else; and how long it is waited for.
 */
import { expect, it } from 'vitest'
import type { BrokerAnswer, BrokerPort } from '#contract'
import { coreContext } from '#ngsi-ld/context.ts'
import { environment } from '#test/kit/plugins.ts'
import { createBackend } from './backend.ts'
import ranking from './plugin.ts'

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
  const backend = createBackend(port, () => 0)
  const ask = async (): Promise<(string | null)[]> => {
    sizes.length = 0
    const asking = { headers: {}, signal: new AbortController().signal, until: 10_000 }
    await backend.candidates(['type=T'], asking, async () => undefined)
    return [...sizes]
  }
  expect(await ask()).toEqual(['1000', '500', '100'])
  refuses.everything = false
  expect(await ask()).toEqual(['1000', '500'])
  expect(await ask()).toEqual(['500'])
})

it('waits by the monotonic clock, whatever the other one says meanwhile', async () => {
  const { port } = brokerThat({ everything: false })
  let [now, monotonic] = [Date.now(), 0]
  const running = await ranking.start({
    settings: { backend: 'mdr', timeoutMs: 1000 },
    mdr: port,
    clock: { now: () => (now += 3_600_000), monotonic: () => monotonic++ },
    context: () => coreContext,
    isOwn: () => false,
  } as never)
  const request = new Request('http://here/ngsi-ld/v1/entities?type=T&weights=a:1')
  const answer = await running.fetch!(request, environment())
  expect([answer.status, await answer.json()]).toEqual([200, []])
})
