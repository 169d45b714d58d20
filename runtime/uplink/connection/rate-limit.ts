/**
 * How fast an uplink may send: buckets of observations and of bytes that fill evenly and hold a second's worth. What was
 * sent is taken out afterwards, so a large request leaves a debt that is waited out. The live lane has buckets of its
 * own and draws on those of both lanes: the history that is filled in never makes it wait, and makes way for it.
 * Only monotonic time counts.
 */

export type Lane = 'live' | 'backfill'

export interface RateLimit {
  /** Observations per second; left out, as fast as it goes. */
  readonly rate?: number | undefined
  readonly bytesPerSecond?: number | undefined
}

export interface Pace {
  /** How long (ms) a lane has to wait; 0: it may send. */
  waitMs(lane: Lane): number
  consume(lane: Lane, observations: number, bytes: number): void
}

interface Bucket {
  waitMs(): number
  take(amount: number): void
}

export function createRateLimit(monotonic: () => number, { rate, bytesPerSecond }: RateLimit): Pace {
  const bucketsFor = (perSecond: number | undefined): Readonly<Record<Lane, Bucket>> => ({
    live: createBucket(monotonic, perSecond),
    backfill: createBucket(monotonic, perSecond),
  })
  const observations = bucketsFor(rate)
  const bytes = bucketsFor(bytesPerSecond)
  return Object.freeze({
    waitMs: (lane) => Math.max(observations[lane].waitMs(), bytes[lane].waitMs()),
    consume(lane, observationCount, byteCount) {
      // What goes live is not there for the history any more, but not the other way round.
      const lanes: readonly Lane[] = lane === 'live' ? ['live', 'backfill'] : ['backfill']
      for (const each of lanes) {
        observations[each].take(observationCount)
        bytes[each].take(byteCount)
      }
    },
  } satisfies Pace)
}

function createBucket(monotonic: () => number, perSecond: number | undefined): Bucket {
  if (perSecond === undefined) return { waitMs: () => 0, take: () => undefined }
  const most = Math.max(1, perSecond)
  let balance = most
  let at = monotonic()
  const fill = (): void => {
    const now = monotonic()
    balance = Math.min(most, balance + ((now - at) / 1000) * perSecond)
    at = now
  }
  return {
    waitMs() {
      fill()
      return balance > 0 ? 0 : Math.ceil((-balance / perSecond) * 1000) + 1
    },
    take(amount) {
      fill()
      balance -= amount
    },
  }
}
