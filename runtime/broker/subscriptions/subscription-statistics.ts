/**
 * Statistics of a subscription's notifications (GS CIM 009, 5.2.14.2): counters and last times. The sender
 * holds them in memory and writes them to the subscription's row from time to time. Times are ms; undefined =
 * never.
 */

export interface SubscriptionStatistics {
  readonly createdAt: number
  modifiedAt: number
  /** Attempts, including failed ones. */
  timesSent: number
  timesFailed: number
  /** Matches within the throttling period, counted but not delivered. */
  timesThrottled: number
  /** Dropped at the ceiling of an endpoint. */
  timesDropped: number
  lastNotification: number | undefined
  lastSuccess: number | undefined
  lastFailure: number | undefined
  lastFailureReason: string | undefined
  /** Commit time of the last period, for periodic subscriptions. */
  lastPeriodAt: number | undefined
}

/** The statistics of a subscription in the matcher. */
interface Holder {
  get(i: number): { readonly statistics: SubscriptionStatistics } | undefined
}

/** Records the outcomes of deliveries for their sender. */
export function createStatisticsKeeper(subscriptions: Holder) {
  const of = (i: number): SubscriptionStatistics | undefined => subscriptions.get(i)?.statistics
  return Object.freeze({
    outcome(
      i: number,
      outcome: { readonly ok: boolean; readonly at: number; readonly error?: string | undefined },
    ): void {
      const statistics = of(i)
      if (statistics === undefined) return
      statistics.timesSent++
      statistics.lastNotification = outcome.at
      if (outcome.ok) {
        statistics.lastSuccess = outcome.at
      } else {
        statistics.timesFailed++
        statistics.lastFailure = outcome.at
        statistics.lastFailureReason = outcome.error
      }
    },
    dropped(i: number, count: number): void {
      const statistics = of(i)
      if (statistics !== undefined) statistics.timesDropped += count
    },
    statistics(i: number): string | undefined {
      const statistics = of(i)
      return statistics === undefined ? undefined : JSON.stringify(statistics)
    },
  })
}

export type StatisticsKeeper = ReturnType<typeof createStatisticsKeeper>

export function unusedStatistics(at: number): SubscriptionStatistics {
  return {
    createdAt: at,
    modifiedAt: at,
    timesSent: 0,
    timesFailed: 0,
    timesThrottled: 0,
    timesDropped: 0,
    lastNotification: undefined,
    lastSuccess: undefined,
    lastFailure: undefined,
    lastFailureReason: undefined,
    lastPeriodAt: undefined,
  }
}

export function parseStatistics(text: string): SubscriptionStatistics {
  return { ...unusedStatistics(0), ...(JSON.parse(text) as Partial<SubscriptionStatistics>) }
}
