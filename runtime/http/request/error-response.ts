/**
 * The only place where an error becomes an answer. Every error leaves as JSON with type, title, detail and status
 * (GS CIM 009, 5.5.3); one that is our fault says only an id, under which the log has the whole truth.
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
  /** The answer to a failed request, which names the tenant that the request was for. */
  answer(error: unknown, tenant?: string): Response
  /** The body alone, for the parts of a 207 (5.2.17). */
  body(error: unknown): Problem
}

/** Faults whose truth is no business of the client's: bugs of ours, and what a disk or a file says. */
const isPrivate = (code: ErrorCode): boolean => code === 'gateway.internal' || code === 'store.failed'

/** 411 says all by its status (GS CIM 009, 6.3.4). 415 has a body beside its headers, since most clients show only that. */
const lengthRequired = 411

export function createProblems({ log, metrics, rules }: ProblemPorts): Problems {
  const failures = metrics.counter('selvedge_http_errors_total')

  const body = (thrown: unknown): Problem & { instance?: string } => {
    const error = toGatewayError(thrown)
    const problem = problemOf(error, rules)
    if (!isPrivate(error.code)) return problem
    const id = randomUUID()
    log.error('gateway.internal-error', { id, code: error.code, error, cause: error.cause })
    const detail = `the gateway could not do this; its log has more under ${id}`
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
      return new Response(isBare ? '' : JSON.stringify(problem), {
        status,
        headers: {
          ...(isBare ? {} : { 'Content-Type': 'application/json' }),
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

/** Headers that belong to a status [RFC 9110 15.5]. */
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
