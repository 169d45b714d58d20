/**
 * Feeds without a sensor fault in the evaluation of fault detection: real steam events that two motes of
 * each network saw, and synthetic feeds of clean decimal values. No sample may get the verdict `faulty`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultDetectionSettings } from '#plugins/faults/detection/detection-settings.ts'
import { createStreamDetector, type StreamSample } from '#plugins/faults/detection/stream-detector.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { judged } from './fault-followers.ts'
import { createAdvice, type FaultModel } from './fault-opinions.ts'

interface Feed {
  readonly name: string
  readonly intervalMs: number
  readonly samples: readonly StreamSample[]
  /** Whether a sample counts. */
  readonly isLabelled: (index: number) => boolean
}

export interface FeedResult {
  readonly name: string
  /** Samples that count. */
  readonly labelled: number
  /** Findings that begin at one of them. */
  readonly anomalies: number
  readonly definite: number
  readonly faulty: number
}

export async function feedResult(feed: Feed, model: FaultModel | undefined): Promise<FeedResult> {
  const { name, intervalMs, samples, isLabelled } = feed
  const follower = {
    detector: createStreamDetector({ intervalMs, settings: defaultDetectionSettings }),
    advice: model === undefined ? undefined : createAdvice([]),
  }
  let labelled = 0
  let anomalies = 0
  let definite = 0
  let faulty = 0
  for (const [i, sample] of samples.entries()) {
    const [judgement] = await judged([follower], { samples: [sample], model, slotMs: intervalMs })
    if (!isLabelled(i)) continue
    labelled++
    for (const { kind } of judgement?.begun ?? []) {
      if (kind === 'definite') definite++
      else anomalies++
    }
    faulty += Number(judgement?.verdict === 'faulty')
  }
  return { name, labelled, anomalies, definite, faulty }
}

const moteIntervalMs = 5000

/** Humidity and temperature of each mote that saw an event. */
export function steamFeeds(folder: string): readonly Feed[] {
  return ['multi_hop.csv', 'single_hop.csv'].flatMap((file) => {
    const path = join(folder, 'wsn_suthaharan', file)
    if (!existsSync(path)) return []
    const rows = readFileSync(path, 'utf8')
      .trim()
      .split(/\r?\n/)
      .slice(1)
      .map((line) => line.split(',').map(Number))
    return [1, 2, 3, 4].flatMap((mote) => {
      const own = rows.filter((row) => row[1] === mote)
      if (!own.some((row) => row[5] === 1)) return []
      return [
        { column: 3, quantity: 'humidity' },
        { column: 4, quantity: 'temperature' },
      ].map(
        ({ column, quantity }): Feed => ({
          name: `${file} mote ${mote} ${quantity}`,
          intervalMs: moteIntervalMs,
          samples: own.map((row) => ({ time: row[0]! * moteIntervalMs, value: row[column]! })),
          isLabelled: (i) => own[i]![5] === 1,
        }),
      )
    })
  })
}

const dayMs = 86_400_000
const feedSamples = 10_000

/** A daily course with noise, in steps of each size, with 24 to 1,440 samples a day. */
export function cleanFeeds(): readonly Feed[] {
  return [0.01, 0.1, 0.2, 0.5, 1].flatMap((step) =>
    [24, 96, 288, 1440].map((perDay, seed): Feed => {
      const random = createSeededRandom(1000 + seed)
      const noise = (): number => (random() + random() + random() - 1.5) * 1.5
      const valueAt = (i: number): number => {
        const exact = 20 + 6 * Math.sin((2 * Math.PI * i) / perDay) + noise()
        return Number((Math.round(exact / step) * step).toFixed(2))
      }
      const intervalMs = dayMs / perDay
      return {
        name: `steps of ${step}, ${perDay} a day`,
        intervalMs,
        samples: Array.from({ length: feedSamples }, (_, i) => ({ time: i * intervalMs, value: valueAt(i) })),
        isLabelled: () => true,
      }
    }),
  )
}
