/**
 * Token buckets that limit the observations and bytes an uplink sends per second. A bucket holds one second's
 * worth and may go into debt after a large request. Live requests draw on the buckets of both lanes: backfill
 * never delays live values, and yields to them. Uses monotonic time.
 */

export type Lane = 'live' | 'backfill'

export interface RateLimitSettings {
  /** Observations per second; absent means unlimited. */
  readonly rate?: number | undefined
  readonly bytesPerSecond?: number | undefined
}

interface Bucket {
  waitMs(): number
  take(amount: number): void
}

export function createRateLimit(monotonic: () => number, { rate, bytesPerSecond }: RateLimitSettings) {
  const bucketsFor = (perSecond: number | undefined): Readonly<Record<Lane, Bucket>> => ({
    live: createBucket(monotonic, perSecond),
    backfill: createBucket(monotonic, perSecond),
  })
  const observations = bucketsFor(rate)
  const bytes = bucketsFor(bytesPerSecond)
  return Object.freeze({
    /** How long (ms) a lane must wait; 0 means it may send. */
    waitMs: (lane: Lane) => Math.max(observations[lane].waitMs(), bytes[lane].waitMs()),
    consume(lane: Lane, observationCount: number, byteCount: number): void {
      // Live requests also reduce the share of the backfill lane, but not vice versa.
      const lanes: readonly Lane[] = lane === 'live' ? ['live', 'backfill'] : ['backfill']
      for (const each of lanes) {
        observations[each].take(observationCount)
        bytes[each].take(byteCount)
      }
    },
  })
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
