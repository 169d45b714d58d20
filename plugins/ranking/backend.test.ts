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

/** A broker that refuses pages of more than 500, and further pages while it fails; records their sizes. */
function brokerOf(count: number) {
  const sizes: number[] = []
  const state = { isFailing: false }
  const port: BrokerPort = {
    address: 'http://broker',
    async exchange({ path }): Promise<BrokerAnswer> {
      const { searchParams } = new URL(path, 'http://broker')
      const [size, offset] = ['limit', 'offset'].map((name) => Number(searchParams.get(name)))
      sizes.push(size!)
      if (size! > 500 || (state.isFailing && offset! > 0)) return { status: 403, headers: {}, text: '{}' }
      const length = Math.max(0, Math.min(size!, count - offset!))
      const items = Array.from({ length }, (_, i) => ({ id: `urn:${offset! + i}` }))
      return { status: 200, headers: {}, text: JSON.stringify(items) }
    },
  }
  return { port, sizes, state }
}

it('remembers an accepted page size, but not after a refusal of every size', async () => {
  const { port, sizes, state } = brokerOf(1200)
  const backend = createBackend(port, () => 0)
  const requestedSizes = async (): Promise<number[]> => {
    sizes.length = 0
    const options = { headers: {}, signal: new AbortController().signal, until: 10_000 }
    await backend.candidates(['type=T'], options, async () => undefined)
    return [...sizes]
  }
  state.isFailing = true
  expect(await requestedSizes()).toEqual([100, 1000, 500, 100])
  state.isFailing = false
  expect(await requestedSizes()).toEqual([100, 1000, 500, 500, 500])
  expect(await requestedSizes()).toEqual([100, 500, 500, 500])
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
  const { port } = brokerOf(0)
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
