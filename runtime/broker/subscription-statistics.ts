/**
 * What a subscription tells of its notifications (GS CIM 009, 5.2.14.2): counters and last times, kept in memory by
 * whoever delivers and written to the subscription's row at leisure. Times are ms; undefined = never.
 */

export interface SubscriptionStatistics {
  readonly createdAt: number
  modifiedAt: number
  timesSent: number
  timesFailed: number
  /** Matches within the throttling period, which are accounted for and not delivered. */
  timesThrottled: number
  /** Dropped at the ceiling of an endpoint. */
  timesDropped: number
  lastNotification: number | undefined
  lastSuccess: number | undefined
  lastFailure: number | undefined
  lastFailureReason: string | undefined
}

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
  }
}

export function parseStatistics(text: string): SubscriptionStatistics {
  return { ...unusedStatistics(0), ...(JSON.parse(text) as Partial<SubscriptionStatistics>) }
}
