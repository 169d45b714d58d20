/**
 * `npm run bench -- faults [--quick] [--only load|detector|learning]`: cost of fault detection beside ingest of 1,000
 * streams with an observation a second each. The floor is the same gateway without it in the same run. Time
 * and memory of a detector are those of this process.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { defaultDetectionSettings } from '#plugins/faults/detection/detection-settings.ts'
import { createStreamDetector, type StreamDetector } from '#plugins/faults/detection/stream-detector.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { benchLearning } from './learning.ts'
import { compareCosts } from './quality.ts'
import { layOutGateway } from './servers.ts'

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const history = 2000
const minuteMs = 60_000

export async function benchFaults({
  quick,
  only,
}: {
  readonly quick: boolean
  readonly only: string | undefined
}): Promise<void> {
  if (only !== 'load' && only !== 'learning') detectors(quick ? 200 : 1000)
  if (only !== 'load' && only !== 'detector') await benchLearning(quick ? 10 : 40, say)
  if (only !== 'detector' && only !== 'learning')
    await compareCosts(layOutGateway(), quick ? 20 : 60, {
      what: 'fault detection',
      without: { quality: { enabled: false }, faults: { enabled: false } },
      with: { quality: { enabled: false }, faults: { enabled: true } },
    })
}

/** Detectors with a history each; then the time of a sample, the bytes of one in memory and on disk. */
function detectors(count: number): void {
  const random = createSeededRandom(1)
  const valueAt = (i: number): number =>
    Number((20 + 5 * Math.sin((2 * Math.PI * i) / 1440) + random()).toFixed(1))
  const before = heapBytes()
  const all: StreamDetector[] = []
  for (let n = 0; n < count; n++) {
    const detector = createStreamDetector({ intervalMs: minuteMs, settings: defaultDetectionSettings })
    detector.learn(Array.from({ length: history }, (_, i) => ({ time: i * minuteMs, value: valueAt(i) })))
    all.push(detector)
  }
  const bytes = (heapBytes() - before) / count
  const samples = 100
  const values = Float64Array.from({ length: samples * count }, (_, k) =>
    valueAt(history + Math.floor(k / count)),
  )
  const usedBefore = process.threadCpuUsage()
  for (let i = 0; i < samples; i++)
    for (const [n, detector] of all.entries())
      detector.take({ time: (history + i) * minuteMs, value: values[i * count + n]! })
  const { user, system } = process.threadCpuUsage(usedBefore)
  const micros = (user + system) / (samples * count)
  const saved = Buffer.byteLength(JSON.stringify(all[0]!.saved()))
  say(`a sample: ${micros.toFixed(1)} us of processor time  (goal 10)`)
  say(`memory of a stream: ${(bytes / 1024).toFixed(1)} KB  (goal 64), saved ${(saved / 1024).toFixed(1)} KB`)
}

function heapBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
