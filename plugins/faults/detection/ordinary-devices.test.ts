/**
 * Devices that are well and look strange: states, events, counters, rain, loads that rest for days. Each runs
 * for weeks; none is called faulty for longer than it takes to learn.
 */
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { defaultDetectionSettings } from './detection-settings.ts'
import { createStreamDetector, type StreamSample } from './stream-detector.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
/** A Monday. */
const start = Date.UTC(2026, 2, 2)

interface Device {
  readonly intervalMs?: number
  readonly samples: readonly StreamSample[]
}

const every = (intervalMs: number, days: number, valueAt: (time: number, i: number) => number): Device => ({
  intervalMs,
  samples: Array.from({ length: Math.floor((days * day) / intervalMs) }, (_, i) => {
    const time = start + i * intervalMs
    return { time, value: valueAt(time, i) }
  }),
})

/** Percentage of faulty samples, and definite findings. */
function judged({ intervalMs, samples }: Device) {
  const settings = defaultDetectionSettings
  const detector = createStreamDetector(intervalMs === undefined ? { settings } : { intervalMs, settings })
  let faulty = 0
  const definite: string[] = []
  for (const sample of samples) {
    const { verdict, begun } = detector.take(sample)
    if (verdict === 'faulty') faulty++
    for (const one of begun) if (one.kind === 'definite') definite.push(one.class)
  }
  return { faulty: (100 * faulty) / samples.length, definite }
}

const hourOf = (time: number): number => (time % day) / hour
const isWork = (time: number): boolean =>
  Math.floor((time - start) / day) % 7 < 5 && hourOf(time) >= 7 && hourOf(time) < 18
const rounded = (value: number, step: number): number => Number((Math.round(value / step) * step).toFixed(3))

const devices: Readonly<Record<string, (random: () => number) => Device>> = {
  'a door contact that reports each minute': (random) =>
    every(minute, 14, (time) => (isWork(time) && random() < 0.01 ? 1 : 0)),
  'a door contact that reports changes': (random) => {
    const samples: StreamSample[] = []
    for (let time = start; time < start + 28 * day; ) {
      time += (isWork(time) ? 40 * minute : 9 * hour) * -Math.log(1 - random())
      samples.push({ time, value: 1 }, { time: time + 12_000 * (0.2 + random()), value: 0 })
      time += 20_000
    }
    return { samples }
  },
  'a motion detector': (random) => {
    const samples: StreamSample[] = []
    for (let time = start; time < start + 14 * day; ) {
      time += (isWork(time) ? 6 * minute : 5 * hour) * -Math.log(1 - random())
      samples.push({ time, value: 1 }, { time: time + minute, value: 0 })
      time += minute
    }
    return { samples }
  },
  'an alarm that is seldom set': () =>
    every(5 * minute, 30, (time) => Number(Math.floor((time - start) / hour) % 170 === 100)),
  'a setpoint with a schedule': () => every(5 * minute, 28, (time) => (isWork(time) ? 21 : 17)),
  'an energy counter': (random) => {
    let sum = 12_345
    return every(minute, 14, (time) => (sum += Math.round(4 + (isWork(time) ? 20 : 2) * random())))
  },
  'a water counter': (random) => {
    let sum = 100
    const used = (time: number): number =>
      hourOf(time) > 6 && random() < 0.3 ? Math.round(5 + 40 * random()) : 0
    return every(15 * minute, 28, (time) => (sum += used(time)))
  },
  'a rain counter': (random) => {
    let sum = 0
    let rains = false
    return every(5 * minute, 28, (_, i) => {
      if (i % 36 === 0) rains = random() < 0.08
      if (rains && random() < 0.5) sum += 0.2
      return rounded(sum, 0.2)
    })
  },
  'a rain gauge': (random) => {
    let rains = false
    return every(5 * minute, 40, (_, i) => {
      if (i % 36 === 0) rains = random() < 0.08
      return rains ? rounded(2 * random(), 0.2) : 0
    })
  },
  'a washing machine': (random) => {
    let left = 0
    return every(minute, 14, (time) => {
      if (left > 0) left--
      else if (hourOf(time) > 8 && hourOf(time) < 20 && random() < 0.0012) left = 90
      return left > 60 ? Math.round(2000 + 60 * random()) : left > 0 ? Math.round(150 + 60 * random()) : 0
    })
  },
  'a vehicle that seldom moves': (random) => {
    let left = 0
    return every(minute, 14, (time) => {
      if (left > 0) left--
      else if (isWork(time) && random() < 0.004) left = 40
      return left > 0 ? Math.round(30 + 40 * random()) : 0
    })
  },
  'a battery in whole percent': (random) =>
    every(hour, 60, (_, i) => Math.round(100 - i / 33 + 0.3 * random())),
  'a battery in tenths of a volt': (random) =>
    every(10 * minute, 60, (_, i) => rounded(3.62 - i / 43_000 + 0.03 * random(), 0.1)),
  'a device of one value a day': (random) =>
    every(day, 365, (_, i) => rounded(15 + 8 * Math.sin((2 * Math.PI * i) / 365) + 8 * random(), 0.1)),
  'a thermometer that reports changes of half a degree': (random) => {
    let last = Number.NaN
    const all = every(minute, 28, (time) => 15 + 5 * Math.sin((2 * Math.PI * time) / day) + 0.3 * random())
    const samples = all.samples.filter(({ value }) => {
      if (Math.abs(value - last) < 0.5) return false
      last = value
      return true
    })
    return { samples }
  },
}

describe('an ordinary device is not called faulty', () => {
  it.each(Object.keys(devices))('%s', (name) => {
    const { faulty, definite } = judged(devices[name]!(createSeededRandom(1)))
    expect(faulty).toBeLessThan(1)
    expect(definite.length).toBeLessThanOrEqual(1)
  })
})

describe('a limit of a stream', () => {
  it('is no fault once the stream rested there again and again', () => {
    const random = createSeededRandom(1)
    const rain = every(hour, 200, (_, i) => (i % 240 < 40 ? rounded(3 * random(), 0.1) : 0))
    const { definite } = judged(rain)
    expect(definite).toEqual(['stuck', 'stuck'])
  })

  it('is judged by the hour of the day if the stream rests there each night', () => {
    const random = createSeededRandom(1)
    const sun = (time: number): number => Math.max(0, Math.sin((2 * Math.PI * (hourOf(time) - 6)) / 24))
    const healthy = every(5 * minute, 21, (time) => Math.round(900 * sun(time) * (0.5 + 0.5 * random())))
    expect(judged(healthy)).toEqual({ faulty: 0, definite: [] })
    const broken = healthy.samples.map(({ time, value }) => ({
      time,
      value: time > start + 20 * day + 10 * hour ? 0 : value,
    }))
    expect(judged({ ...healthy, samples: broken }).definite).toContain('stuck')
  })
})

describe('a run of equal values over centuries', () => {
  it('is learned in no time', () => {
    const detector = createStreamDetector({ settings: defaultDetectionSettings })
    const begun = performance.now()
    for (const time of [0, 8e15, 8.1e15, 8.2e15]) detector.take({ time, value: time < 8.2e15 ? 5 : 6 })
    expect(performance.now() - begun).toBeLessThan(1000)
  })
})
