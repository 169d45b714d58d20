/**
 * Reports the state of the clock: gauges, and a log line whenever it is set, distrusted or jumps.
 */

import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock, ClockEvent } from './clock.ts'

export function reportClock({ trust }: Clock, { log, metrics }: { log: Log; metrics: Metrics }): void {
  if (trust === undefined) return
  const is = (state: string) => (): number => (trust.status().state === state ? 1 : 0)
  metrics.gauge('selvedge_clock_synced', is('synced'))
  metrics.gauge('selvedge_clock_unsynced', is('unsynced'))
  metrics.gauge('selvedge_clock_jumps_total', () => trust.status().jumps)
  metrics.gauge('selvedge_clock_ahead_seconds', () => trust.status().ahead / 1000)
  trust.watch((event) => report(event, log))
  const { state, reason } = trust.status()
  if (state === 'unsynced') log.warn('clock.unsynced', { reason })
}

function report(event: ClockEvent, log: Log): void {
  const bySeconds = event.by / 1000
  if (event.kind === 'jumped') log.warn('clock.jumped', { bySeconds })
  else if (event.kind === 'unsynced') log.warn('clock.unsynced', { reason: event.reason })
  else if (event.kind === 'coarse') log.info('clock.coarse', { reason: event.reason, bySeconds })
  else log.info('clock.synced', { bySeconds })
}
