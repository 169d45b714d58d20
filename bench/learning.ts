/**
 * Event-loop delay while detectors learn from history in slices: at rest, with the choice of the approach on
 * the main thread, and with the choice in a thread, as the gateway makes it.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { createApproachChooser } from '#plugins/faults/anomalies/approach-chooser.ts'
import { defaultDetectionSettings } from '#plugins/faults/detection/detection-settings.ts'
import { createStreamDetector, type StreamSample } from '#plugins/faults/detection/stream-detector.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'

const minuteMs = 60_000
const probeMs = 2

/** A daily course with noise, the longest history that a detector learns from. */
function historyOf(seed: number): StreamSample[] {
  const random = createSeededRandom(seed)
  return Array.from({ length: limits.faultsHistoryMax.value }, (_, i) => ({
    time: i * minuteMs,
    value: Number((20 + 5 * Math.sin((2 * Math.PI * i) / 288) + random()).toFixed(1)),
  }))
}

/**
 * Delays of a timer while some work goes on, ms, and the time that this thread computed between two runs of it,
 * which other processes of the machine do not change.
 */
async function delaysDuring(work: () => Promise<void>) {
  const delays: number[] = []
  const turns: number[] = []
  let dueAt = performance.now() + probeMs
  let computed = computedMs()
  let isOver = false
  const probe = (): void => {
    const now = performance.now()
    delays.push(now - dueAt)
    dueAt = now + probeMs
    turns.push(computedMs() - computed)
    computed = computedMs()
    if (!isOver) setTimeout(probe, probeMs)
  }
  setTimeout(probe, probeMs)
  const begunAt = performance.now()
  await work()
  isOver = true
  return { delays, turns, seconds: (performance.now() - begunAt) / 1000 }
}

function computedMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Learns the histories of some streams as `plugins/faults/streams/watching.ts` does. */
async function learn(streams: number, isThreaded: boolean): Promise<void> {
  const log = createLog({ level: 'error', clock: systemClock, write: (line) => process.stderr.write(line) })
  const chooser = createApproachChooser(log)
  for (let seed = 1; seed <= streams; seed++) {
    const samples = historyOf(seed)
    const detector = createStreamDetector({
      intervalMs: minuteMs,
      settings: defaultDetectionSettings,
      ...(isThreaded && { choose: chooser.choose }),
    })
    for (let at = 0; at < samples.length; at += limits.faultsLearnSlice.value) {
      detector.learn(samples.slice(at, at + limits.faultsLearnSlice.value))
      await yieldToEventLoop()
      await chooser.settled()
    }
  }
  await chooser.close()
}

export async function benchLearning(streams: number, say: (line: string) => void): Promise<void> {
  const rest = () => new Promise<void>((resolve) => setTimeout(resolve, 5000))
  const rows = [
    ['none', rest],
    ['fits on the main thread', () => learn(streams, false)],
    ['fits in a thread', () => learn(streams, true)],
  ] as const
  for (const [name, work] of rows) {
    const { delays, turns, seconds } = await delaysDuring(work)
    say(`learning, ${name}: event-loop delay ${figuresOf(delays)} in ${seconds.toFixed(1)} s`)
    say(`  computing between two turns ${figuresOf(turns)}`)
  }
}

function figuresOf(all: readonly number[]): string {
  const sorted = all.toSorted((a, b) => a - b)
  const at = (share: number): string => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(2)
  return `p50 ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)} ms`
}
