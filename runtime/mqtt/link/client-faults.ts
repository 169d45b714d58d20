/**
 * Counts all faults of clients, and logs at most one per second, so that a hostile client cannot fill the
 * disk with log lines.
 */

import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'

const lineMs = 1000

export function createFaults({ clock, log, metrics }: { clock: Clock; log: Log; metrics: Metrics }) {
  const total = metrics.counter('selvedge_mqtt_client_errors_total')
  let lineAt = Number.NEGATIVE_INFINITY
  let unsaid = 0
  return Object.freeze({
    note(client: string, reason: string): void {
      total.value++
      const now = clock.monotonic()
      if (now - lineAt < lineMs) {
        unsaid++
        return
      }
      log.warn('mqtt.client-error', { client, reason, unsaid })
      lineAt = now
      unsaid = 0
    },
  })
}
