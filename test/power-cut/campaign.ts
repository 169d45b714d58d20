/**
 * A campaign of power cuts: boots the machine, judges what is there against what was acknowledged in all lives before, feeds it
 * over MQTT, and cuts its power in the middle. At the end it lets the disk lie about its last flushes: a judge who does
 * not notice that proves nothing.
 */
import { currentOf, historyOf, retainedAt } from '#test/crash/evidence.ts'
import { type Complaint, judgeCurrent, judgeHistory, judgeRetained } from '#test/crash/judge.ts'
import {
  createStream,
  nextValue,
  type Sent,
  type Stream,
  simpleResult,
  type Topic,
  windowOf,
} from '#test/crash/ledger.ts'
import { device, herald, type Publisher, pause, publish } from '#test/crash/publishers.ts'
import { connectRaw } from '#test/kit/mqtt.ts'
import { type Acceleration, createMachine, type Life, type Machine } from './machine.ts'

export interface CampaignSettings {
  readonly kills: number
  /** Numbers in [0, 1). */
  readonly dice: () => number
  readonly cache: string
  readonly accel: Acceleration
  readonly folder: string
  readonly tell: (line: string) => void
}

export interface CampaignReport {
  readonly complaints: readonly Complaint[]
  readonly acknowledged: number
  readonly lostWrites: number
  /** Whether the judge complained of the disk that lies. */
  readonly isNoticed: boolean
}

interface Feed {
  readonly streams: readonly Stream[]
  readonly topics: readonly Topic[]
  readonly publishers: readonly Publisher[]
}

const deviceCount = 8
/** Messages to be acknowledged before a cut, where the machine manages it within the longest time: else there is little to lose. */
const leastAcknowledged = 100
const longestFedMs = 40_000
const liesAboutFlushes = 40

export async function runPowerCuts(settings: CampaignSettings): Promise<CampaignReport> {
  const { kills, dice, cache, accel, folder, tell } = settings
  const machine = createMachine(cache, folder, accel)
  const feed = createFeed()
  const complaints: Complaint[] = []
  let lostWrites = 0
  try {
    for (let kill = 1; kill <= kills; kill++) {
      const life = await bootReachable(machine)
      if (kill === 1) tell(lineOf(life, 'ready on'))
      complaints.push(...(await judge(feed, life)))
      const fedMs = await feedFor(feed, life, 3000 + Math.floor(dice() * 9000))
      const restored = await life.cut(kill % 2 === 0 ? { isSpared: () => dice() < 0.5 } : {})
      lostWrites += restored.lost
      tell(
        `cut ${kill}: up in ${(life.bootMs / 1000).toFixed(1)} s, ${complaints.length} complaints; fed for ${fedMs} ms, ${acknowledgedOf(feed)} messages acknowledged in all; disk: ${restored.flushes} flushes, ${restored.kept} writes kept, ${restored.lost} lost`,
      )
    }
    const last = await bootReachable(machine)
    complaints.push(...(await judge(feed, last)))
    const acknowledged = acknowledgedOf(feed)
    await feedFor(feed, last, 8000)
    await last.cut({ flushesIgnored: liesAboutFlushes })
    const isNoticed = await noticed(feed, () => bootReachable(machine))
    return { complaints, acknowledged, lostWrites, isNoticed }
  } finally {
    machine.off()
  }
}

/** The guest's doors to its loopback begin with the first client, which takes a while where it is emulated. */
async function bootReachable(machine: Machine): Promise<Life> {
  const life = await machine.boot()
  for (let tries = 0; ; tries++) {
    try {
      await fetch(`${life.httpUrl}/health/ready`)
      const client = await connectRaw(life.mqttPort, 'first')
      client.end()
      return life
    } catch (error) {
      if (tries === 20) throw error
      await pause(1000)
    }
  }
}

/** A file system or a database that is in pieces is noticed, too. */
async function noticed(feed: Feed, boot: () => Promise<Life>): Promise<boolean> {
  try {
    return (await judge(feed, await boot())).some(({ fault }) => fault === 'lost' || fault === 'damaged')
  } catch {
    return true
  }
}

function createFeed(): Feed {
  const baseMs = Date.now() - 86_400_000
  const streams: Stream[] = []
  const publishers: Publisher[] = []
  for (let i = 0; i < deviceCount; i++) {
    const id = `power-${i}`
    const entity = `urn:ngsi-ld:StreamObservation:${id}:v`
    const stream = createStream(entity, simpleResult, { baseMs, isNotified: false, hasLate: true })
    streams.push(stream)
    publishers.push(device(stream, { device: id, field: 'v' }, { count: i === 0 ? 32 : 1, pauseMs: 40 }))
  }
  const topics = ['note/a', 'note/b', 'note/c'].map(
    (name): Topic => ({ name, retain: true, messages: [], settled: 0 }),
  )
  publishers.push(herald(topics, 60))
  return { streams, topics, publishers }
}

/**
 * Feeds until the power goes: the clients are left as they are, in the middle of it. For `ms` at least, and on a machine that
 * is slow until enough was acknowledged. Returns for how long, ms.
 */
async function feedFor(feed: Feed, { mqttPort }: Life, ms: number): Promise<number> {
  const never = new Promise<void>(() => undefined)
  const before = acknowledgedOf(feed)
  for (const one of feed.publishers) void publish(mqttPort, one, never).catch(() => undefined)
  let fedMs = ms
  await pause(ms)
  for (; fedMs < longestFedMs && acknowledgedOf(feed) - before < leastAcknowledged; fedMs += 250)
    await pause(250)
  return fedMs
}

async function judge({ streams, topics }: Feed, life: Life): Promise<Complaint[]> {
  const complaints: Complaint[] = []
  const verdicts = [...life.console().matchAll(/power-cut: integrity of (\S+): (.*?)\r?$/gm)]
  if (verdicts.length === 0) complaints.push({ fault: 'damaged', text: 'no database was looked at' })
  for (const [, name, verdict] of verdicts)
    if (verdict !== 'ok') complaints.push({ fault: 'damaged', text: `${name}: ${verdict}` })
  for (const stream of streams) {
    const end = nextValue(stream)
    if (end === 0) continue
    const instances = await historyOf(life.httpUrl, stream, windowOf(stream, 0, end))
    complaints.push(...judgeHistory(stream, 0, instances))
    complaints.push(...judgeCurrent(stream, await currentOf(life.httpUrl, stream)))
  }
  const verdict = (seen: ReadonlyMap<string, string>): Complaint[] =>
    topics.flatMap((topic) => judgeRetained(topic, seen.get(topic.name)))
  const seen = await retainedAt(life.mqttPort, 'note/#', (found) => verdict(found).length === 0, 100_000)
  return [...complaints, ...verdict(seen)]
}

function acknowledgedOf({ streams, topics }: Feed): number {
  const count = ({ messages }: Sent): number => messages.filter(({ acknowledged }) => acknowledged).length
  return [...streams, ...topics].reduce((sum, one) => sum + count(one), 0)
}

const lineOf = (life: Life, words: string): string =>
  life
    .console()
    .split(/\r?\n/)
    .find((line) => line.includes(words)) ?? ''
