/** The instruments that nearly every part of the process receives: clock, metrics and log. */
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'

export interface Instruments {
  readonly clock: Clock
  readonly metrics: Metrics
  readonly log: Log
}
