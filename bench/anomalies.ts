/**
 * `npm run bench -- anomalies [--quick]`: what the anomaly detectors of a stream cost: time by value and memory, with and
 * without the neighbour library, and the fit of the seasonal ARIMA. In this process, on seeded values.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type AnomalyChain, createAnomalyChain } from '#plugins/faults/anomalies/anomaly-chain.ts'
import { chooseApproach } from '#plugins/faults/anomalies/approach.ts'
import { normalDeviates } from '#test/kit/normal-deviates.ts'
import { percentile } from './processes.ts'

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const period = 96
const modes = [
  { name: 'without library', withNeighbourLibrary: false, goals: { micros: 10, bytes: 65_536 } },
  { name: 'with library', withNeighbourLibrary: true, goals: { micros: 100, bytes: 262_144 } },
]

/** A daily course of a sensor that reports every quarter of an hour. */
function values(count: number, seed: number): Float64Array {
  const next = normalDeviates(seed)
  return Float64Array.from(
    { length: count },
    (_, i) => 20 + 5 * Math.sin((2 * Math.PI * i) / period) + next(),
  )
}

export async function benchAnomalies({ quick }: { readonly quick: boolean }): Promise<void> {
  const series = values(quick ? 20_000 : 100_000, 1)
  for (const { name, withNeighbourLibrary, goals } of modes) {
    for (const approach of ['seasonal-arima', 'dirichlet-process'] as const) {
      run(createAnomalyChain({ approach, withNeighbourLibrary }), series.subarray(0, 5000))
      const started = cpuMicros()
      run(createAnomalyChain({ approach, withNeighbourLibrary }), series)
      const micros = (cpuMicros() - started) / series.length
      say(`${name}, ${approach}: ${micros.toFixed(1)} us by value, fits included  (goal ${goals.micros})`)
    }
    const bytes = await bytesPerChain(quick ? 50 : 200, withNeighbourLibrary)
    say(`${name}: ${bytes.toFixed(0)} B by stream  (goal ${goals.bytes})`)
  }
  const history = values(1000, 2)
  const fits = Array.from({ length: quick ? 10 : 50 }, () => {
    const started = cpuMicros()
    chooseApproach({ values: history, firstSlot: 0, isArimaForced: true })
    return (cpuMicros() - started) / 1000
  })
  say(
    `period and 48 orders of 1,000 values: ${percentile(fits, 0.5).toFixed(1)} ms, 99 % ${percentile(fits, 0.99).toFixed(1)} ms  (goal 50)`,
  )
}

/** Of this process: other processes of the machine do not count. */
function cpuMicros(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

function run(chain: AnomalyChain, series: Float64Array): AnomalyChain {
  for (const value of series) chain.take(value, true)
  return chain
}

/** Memory of a chain that has its full history and an ARIMA. */
async function bytesPerChain(count: number, withNeighbourLibrary: boolean): Promise<number> {
  const series = values(2300, 3)
  const fill = (): AnomalyChain[] =>
    Array.from({ length: count }, () => run(createAnomalyChain({ withNeighbourLibrary }), series))
  const first = fill()
  const before = await collected()
  const second = fill()
  const bytes = ((await collected()) - before) / count
  // Both live to here.
  for (const chain of [...first, ...second]) chain.take(undefined, false)
  return bytes
}

async function collected(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let i = 0; i < 10; i++) {
    collect()
    // Buffers are freed a moment later.
    await pause(50)
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
