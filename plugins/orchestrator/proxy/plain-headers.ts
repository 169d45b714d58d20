/**
 * Headers of a request as the connection parsed them. Reading a few of them there costs less than building a
 * Headers object for all. Names must be in lower case.
 */
import type { RouteEnvironment } from '#contract'

export function plainHeaders(request: Request, { arrival }: RouteEnvironment): Pick<Headers, 'get' | 'has'> {
  if (arrival === undefined) return request.headers
  const given = arrival.incoming.headers
  return {
    get: (name) => given[name]?.toString() ?? null,
    has: (name) => given[name] !== undefined,
  }
}
