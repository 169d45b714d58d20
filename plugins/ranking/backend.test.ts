/**
 * Page sizes of the backend: uses the largest size it accepts, and does not reduce it for other refusals.
 * Deadlines.
 */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { systemClock } from '#base/time/clock.ts'
import type { BrokerAnswer, BrokerPort } from '#contract'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { environment } from '#test/kit/plugins.ts'
import { createBackend } from './backend.ts'
import ranking from './plugin.ts'

/** A broker that refuses every query, or pages of more than 500; records its requests. */
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

it('remembers an accepted page size, but not after a refusal of every size', async () => {
  const refuses = { everything: true }
  const { port, sizes } = brokerThat(refuses)
  const backend = createBackend(port, () => 0)
  const requestedSizes = async (): Promise<(string | null)[]> => {
    sizes.length = 0
    const options = { headers: {}, signal: new AbortController().signal, until: 10_000 }
    await backend.candidates(['type=T'], options, async () => undefined)
    return [...sizes]
  }
  expect(await requestedSizes()).toEqual(['1000', '500', '100'])
  refuses.everything = false
  expect(await requestedSizes()).toEqual(['1000', '500'])
  expect(await requestedSizes()).toEqual(['500'])
})

it('returns repeated warnings once, and no more than fit into a header', async () => {
  const pages = 20
  const port: BrokerPort = {
    address: 'http://b',
    async exchange({ path }): Promise<BrokerAnswer> {
      const { searchParams } = new URL(path, 'http://b')
      const offset = Number(searchParams.get('offset'))
      const left = pages * 100 - offset
      const items = Array.from({ length: Math.min(100, left) }, (_, i) => ({ id: `urn:${offset + i}`, a: i }))
      const each = `111 b "page ${offset} ${'x'.repeat(1000)}"`
      const headers = { 'ngsild-warning': `110 old "a, b", ${each}` }
      if (Number(searchParams.get('limit')) > 100) return { status: 403, headers: {}, text: '' }
      return { status: 200, headers, text: JSON.stringify(items) }
    },
  }
  const running = await ranking.start({
    settings: { backend: 'mdr', timeoutMs: 10_000 },
    mdr: port,
    clock: systemClock,
    context: () => coreContext,
    isOwn: () => false,
  } as never)
  const request = new Request('http://here/ngsi-ld/v1/entities?type=T&weights=a:1&options=keyValues&limit=1')
  const { headers } = await running.fetch!(request, environment())
  const warning = headers.get('NGSILD-Warning')!
  expect(warning.length).toBeLessThan(limits.warningsBytesMax.value + 100)
  expect(warning.match(/110 old "a, b"/g)).toHaveLength(1)
  expect(warning).toMatch(/^110 old "a, b", 111 b "page 0 x+", .*199 - "and \d+ more"$/)
})

it('measures the deadline with the monotonic clock', async () => {
  const { port } = brokerThat({ everything: false })
  let now = Date.now()
  let monotonic = 0
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
