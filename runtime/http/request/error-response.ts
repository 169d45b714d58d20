/**
 * The only place that turns errors into responses. Every error is sent as JSON with type, title, detail and
 * status (GS CIM 009, 5.5.3). An internal error shows only an id; the log holds its details under that id.
 */
import { randomUUID } from 'node:crypto'
import { type ErrorCode, type GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import { productToken } from '#base/register/version.ts'
import { type Problem, problemOf } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ProfileRules } from '#ngsi-ld/values/profile.ts'
import { tenantName } from './negotiate.ts'

export interface ProblemPorts {
  readonly log: Log
  readonly metrics: Metrics
  readonly rules: ProfileRules
}

export interface Problems {
  /** The response to a failed request; it names the request's tenant. */
  answer(error: unknown, tenant?: string): Response
  /** Only the body, for the parts of a 207 (5.2.17). */
  body(error: unknown): Problem
}

/** Errors whose details clients must not see: bugs of the gateway, and messages of a disk or file. */
const isPrivate = (code: ErrorCode): boolean => code === 'gateway.internal' || code === 'store.failed'

/**
 * A 411 has no body (GS CIM 009, 6.3.4). A 415 has one beside its headers, since most clients show only that.
 */
const lengthRequired = 411

export function createProblems({ log, metrics, rules }: ProblemPorts): Problems {
  const failures = metrics.counter('selvedge_http_errors_total')

  const body = (thrown: unknown): Problem & { instance?: string } => {
    const error = toGatewayError(thrown)
    const problem = problemOf(error, rules)
    if (!isPrivate(error.code)) return problem
    const id = randomUUID()
    log.error('gateway.internal-error', { id, code: error.code, error, cause: error.cause })
    const detail = `internal error; the gateway's log has details under ${id}`
    return { ...problem, detail, instance: `urn:uuid:${id}` }
  }

  return Object.freeze({
    body,
    answer(thrown: unknown, tenant = '') {
      const error = toGatewayError(thrown)
      const problem = body(error)
      if (problem.status >= 500) failures.value++
      const { status } = problem
      const isBare = status === lengthRequired
      return new Response(isBare ? null : JSON.stringify(problem), {
        status,
        headers: {
          ...(isBare ? { 'Content-Length': '0' } : { 'Content-Type': 'application/json' }),
          Server: productToken,
          ...extraHeaders(error),
          ...tenantHeader(tenant),
        },
      })
    },
  })
}

const tenantHeader = (tenant: string): Record<string, string> =>
  tenantName.test(tenant) ? { 'NGSILD-Tenant': tenant } : {}

/** Headers required by a status [RFC 9110 15.5]. */
function extraHeaders({ code, entry, details }: GatewayError): Record<string, string> {
  if (code === 'http.method-not-allowed') return { Allow: String(details['allow']) }
  if (code === 'http.unauthorized') return { 'WWW-Authenticate': 'Bearer realm="selvedge"' }
  if (code === 'http.unsupported-media-type') {
    const { allowed, codings } = details as {
      readonly allowed?: readonly string[]
      readonly codings?: string
    }
    return allowed === undefined ? { 'Accept-Encoding': codings ?? '' } : { Accept: allowed.join(', ') }
  }
  if (entry.status === 503) return { 'Retry-After': String(Number(details['retryAfterSeconds'] ?? 1)) }
  return {}
}
