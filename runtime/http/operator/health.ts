/** Liveness, readiness with reasons, metrics and version. These routes only report; they change nothing. */

import type { Metrics } from '#base/register/metrics.ts'
import { productToken, version } from '#base/register/version.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Answers } from '#http/request/response.ts'
import type { ConformanceProfile } from '#ngsi-ld/values/profile.ts'

export interface AdminPorts {
  readonly metrics: Metrics
  readonly answers: Answers
  readonly clock: Clock
  /** The reasons why the gateway is not ready; empty when it is. */
  readonly unreadiness: () => readonly string[]
  /** Problems that need an operator's attention although every request is served. */
  readonly complaints: () => readonly string[]
  readonly downward: () => object | undefined
  /** The state of each plugin by name. */
  readonly components: { status(): object }
}

export interface AdminSettings {
  readonly profile: ConformanceProfile
  /** Version of the data format on disk. */
  readonly dataFormat: number
  /** Most instances of history in one answer. */
  readonly temporalInstancesMax: number
}

export function createAdminRoutes(
  { metrics, answers, clock, unreadiness, complaints, downward, components }: AdminPorts,
  settings: AdminSettings,
) {
  const noStore = { 'Cache-Control': 'no-store' }
  return Object.freeze({
    live: () => answers.json({ status: 'up', version }, 200, noStore),

    ready() {
      const reasons = unreadiness()
      const degraded = complaints()
      const status = reasons.length > 0 ? 'not ready' : degraded.length > 0 ? 'degraded' : 'ready'
      return answers.json(
        { status, version, reasons: [...reasons], degraded: [...degraded], ...clockOf(clock) },
        reasons.length === 0 ? 200 : 503,
        noStore,
      )
    },

    metrics: () =>
      new Response(metrics.expose(), {
        headers: {
          'Content-Type': 'text/plain; version=0.0.4; charset=utf-8',
          Server: productToken,
          ...noStore,
        },
      }),

    downward: () => answers.json(downward() ?? {}, 200, noStore),

    plugins: () => answers.json(components.status(), 200, noStore),

    info: () =>
      answers.json({
        product: 'selvedge',
        version,
        conformance: { ngsiLd: settings.profile },
        dataFormat: settings.dataFormat,
        temporalInstancesMax: settings.temporalInstancesMax,
      }),
  })
}

/** The trust in the system clock; empty if the clock does not report it. */
function clockOf({ trust }: Clock): { clock?: { state: string; reason?: string } } {
  if (trust === undefined) return {}
  const { state, reason } = trust.status()
  return { clock: { state, ...(reason === '' ? {} : { reason }) } }
}
