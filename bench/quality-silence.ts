/**
 * The scene `silent` of the quality bench: 10,000 streams with an update interval of 10 s fall silent together. Each loses
 * its rated completeness in four steps, with the fourth missing value 41 s after its last one. Prints what that costs, and
 * how late the last quality was written. The floor is the fourth missing value of the last stream.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { eventLoopDelays, processCpuSeconds, startPinned, writtenBytes } from './processes.ts'
import { end, type Server } from './servers.ts'

export const silentStreams = 10_000
export const silentIntervalSeconds = 10
const publishers = 50
/** Slow enough that devices are created as they appear. */
const creatingPerSecond = 1000
const creatingMs = 180_000
/** All streams in two seconds, so that their deadlines lie in two seconds, too. */
const endingPerSecond = 5000
const endingSeconds = 4
/** A value is missing 1.1 intervals after the one before; the fourth takes the last of the rated completeness. */
const fourthMissingMs = 4.1 * silentIntervalSeconds * 1000
const pageSize = 1000
const load = new URL('./mqtt-load.ts', import.meta.url).pathname
const say = (line: string): void => void process.stdout.write(`${line}\n`)

export async function measureSilence(server: Server): Promise<void> {
  const { httpPort, pid } = server
  const publish = (perSecond: number, seconds: number) =>
    startPinned(1, [
      process.execPath,
      load,
      ...[server.port, publishers, 1, seconds, silentStreams, perSecond, 'live'].map(String),
    ])
  const creating = publish(creatingPerSecond, 3600)
  for (const until = performance.now() + creatingMs; performance.now() < until; await pause(1000))
    if ((await statusOf(httpPort)).streams === silentStreams) break
  await end(creating)
  while (!isIdle(await statusOf(httpPort))) await pause(1000)
  const ending = publish(endingPerSecond, endingSeconds)
  await new Promise((resolve) => ending.once('exit', resolve))
  // A scrape begins the next span of the delays.
  await eventLoopDelays(httpPort)
  const [cpu, bytes, begin] = [processCpuSeconds(pid), writtenBytes(pid), Date.now()]
  await pause(fourthMissingMs)
  while (!isIdle(await statusOf(httpPort))) await pause(250)
  const { p99Ms, longestMs } = await eventLoopDelays(httpPort)
  const seconds = (Date.now() - begin) / 1000
  const share = ((processCpuSeconds(pid) - cpu) / seconds) * 100
  const written = writtenBytes(pid) - bytes
  const times = await timesOfLost(httpPort)
  say(
    `${(await statusOf(httpPort)).streams} streams fall silent together: ${times.length} lost their quality`,
  )
  say(
    `CPU ${share.toFixed(1)} % of a core in ${seconds.toFixed(0)} s; ${(written / 1e6).toFixed(1)} MB to flash`,
  )
  say(`event loop p99 ${p99Ms.toFixed(1)} ms, longest ${longestMs.toFixed(0)} ms  (goal 50)`)
  const lateMs = times.reduce((latest, time) => Math.max(latest, time), 0) - begin - fourthMissingMs
  say(`the last quality was written ${(lateMs / 1000).toFixed(1)} s after its fourth value was missing`)
}

interface Status {
  readonly streams: number
  readonly waiting: number
  readonly position: number | null
  readonly log: number
}

async function statusOf(httpPort: number): Promise<Status> {
  return (await (await fetch(`http://127.0.0.1:${httpPort}/quality/status`)).json()) as Status
}

const isIdle = ({ waiting, position, log }: Status): boolean => waiting === 0 && position === log

/** When the qualities whose rated completeness is 0 were written, ms. */
async function timesOfLost(httpPort: number): Promise<number[]> {
  const qoi = 'https://w3id.org/iot/qoi#'
  const times: number[] = []
  for (let offset = 0; ; offset += pageSize) {
    const query = new URLSearchParams({ type: `${qoi}Quality`, limit: `${pageSize}`, offset: `${offset}` })
    const answer = await fetch(`http://127.0.0.1:${httpPort}/ngsi-ld/v1/entities?${query}`)
    if (!answer.ok) throw new TypeError(`${query} was answered with ${answer.status}`)
    const page = (await answer.json()) as Record<string, Readonly<Record<string, unknown>> | undefined>[]
    for (const entity of page) {
      const completeness = entity[`${qoi}completeness`]
      const rated = completeness?.[`${qoi}hasRatedValue`] as { readonly value: number } | undefined
      if (rated?.value === 0) times.push(Date.parse(completeness!['observedAt'] as string))
    }
    if (page.length < pageSize) return times
  }
}
