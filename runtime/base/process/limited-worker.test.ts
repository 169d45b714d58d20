/** Threads keep to their own memory limits, whatever flags the process was started with. */
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { expect, it } from 'vitest'
import { startLimitedWorker } from './limited-worker.ts'

/** Keeps many objects alive, so that V8 lets the young generation grow, and reports its size in bytes. */
const growing = `
import { getHeapSpaceStatistics } from 'node:v8'
import { parentPort } from 'node:worker_threads'
let kept = []
for (let i = 0; i < 2_000_000; i++) {
  kept.push({ i, text: String(i) })
  if (kept.length > 60_000) kept = kept.slice(30_000)
}
const young = getHeapSpaceStatistics().find((one) => one.space_name === 'new_space')
parentPort.postMessage(young.space_size)
`

it('limits the young generation of a thread although a flag allows the main thread more', async () => {
  setFlagsFromString('--max-semi-space-size=16')
  const module = new URL(`data:text/javascript,${encodeURIComponent(growing)}`)
  const worker = startLimitedWorker(module, { resourceLimits: { maxYoungGenerationSizeMb: 6 } })
  const [bytes] = (await once(worker, 'message')) as [number]
  await worker.terminate()
  expect(bytes).toBeLessThan(10_000_000)
})
