/** The instruments that most parts of the process receive: clock, log and metrics. */
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'

export interface ClockAndLog {
  readonly clock: Clock
  readonly log: Log
}

export interface Instruments extends ClockAndLog {
  readonly metrics: Metrics
}
