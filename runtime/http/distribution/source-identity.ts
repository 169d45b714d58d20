/**
 * The identity of this gateway as a context source (GS CIM 009, 5.15): its alias, uptime and clock. Each
 * tenant has its own alias.
 */

import type { Clock } from '#base/time/clock.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import type { HttpContext } from '#http/request/body.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'

export const sourceIdentityPath = '/ngsi-ld/v1/info/sourceIdentity'

export interface SourceIdentityPorts extends ApiPorts {
  readonly clock: Clock
  /** The pseudonym by which brokers recognize this gateway; it survives restarts. */
  readonly alias: (tenant: string) => string
}

const noParameters = new Set<string>()

export function createSourceIdentityRoutes({ requests, answers, clock, alias }: SourceIdentityPorts) {
  const startedAt = clock.monotonic()
  return Object.freeze({
    async retrieve(c: HttpContext): Promise<Response> {
      const parsed = await requests.read(c, noParameters)
      const name = alias(parsed.tenant)
      const identity = {
        id: `urn:ngsi-ld:ContextSourceIdentity:${name}`,
        type: 'ContextSourceIdentity',
        contextSourceAlias: name,
        contextSourceUptime: durationOf(clock.monotonic() - startedAt),
        contextSourceTimeAt: msToDateTime(clock.now()),
      }
      return answers.entity(parsed, JSON.stringify(identity), answers.contextFor(parsed))
    },
  })
}

/** Formats an ISO 8601 duration in days, hours, minutes and seconds. */
function durationOf(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ]
  return `P${days === 0 ? '' : `${days}D`}T${hours}H${minutes}M${seconds % 60}S`
}
