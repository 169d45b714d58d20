/**
 * Headers of a request as the connection parsed them. Reading a few of them there costs less than building a
 * Headers object for all. Names must be in lower case.
 */
import type { DirectRequest } from '#contract'

export function plainHeaders({
  headers: given,
}: Pick<DirectRequest, 'headers'>): Pick<Headers, 'get' | 'has'> {
  return {
    get: (name) => given[name]?.toString() ?? null,
    has: (name) => given[name] !== undefined,
  }
}
