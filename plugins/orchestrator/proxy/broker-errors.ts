/** Errors of the broker behind the proxy as NGSI-LD problems: 502 unreachable, 504 late. */
import { GatewayError } from '#base/register/errors.ts'
import { productToken } from '#base/register/version.ts'
import { problemOf } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** @throws any error that is not one of the broker. */
export function failedAnswer(error: unknown): Response {
  if (!(error instanceof GatewayError) || !/^peer\.(?:unavailable|timeout)$/.test(error.code)) throw error
  const problem = { ...problemOf(error), type: 'https://uri.etsi.org/ngsi-ld/errors/InternalError' }
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { 'Content-Type': 'application/json', Server: productToken },
  })
}
