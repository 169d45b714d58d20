/** Paths and methods of a plugin: finds the route of a request, and reads its parameters. */
import { withoutTrailingSlashes } from '#base/load/trailing-slashes.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json, RouteEnvironment } from '#contract'
import { parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData, invalidRequest, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export interface RouteRequest {
  readonly request: Request
  readonly environment: RouteEnvironment
  /** The decoded segment that `*` in the path stands for; empty if there is none. */
  readonly segment: string
  readonly parameters: URLSearchParams
}

type Route = (request: RouteRequest) => Response | Promise<Response>
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** Methods by path; `*` stands for one segment. */
export type RouteTable = Readonly<Record<string, Partial<Record<Method, Route>>>>

export function createRouter(
  table: RouteTable,
): (request: Request, environment: RouteEnvironment) => Response | Promise<Response> {
  return (request, environment) => {
    const { pathname, searchParams: parameters } = new URL(request.url)
    const path = pathname === '/' ? '/' : withoutTrailingSlashes(pathname)
    const end = path.lastIndexOf('/') + 1
    const exact = Object.hasOwn(table, path)
    const methods = exact ? table[path] : table[`${path.slice(0, end)}*`]
    if (methods === undefined || (!exact && path.length === end)) throw notFound(`no resource at ${path}`)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const route = Object.hasOwn(methods, method) ? methods[method as Method] : undefined
    if (route === undefined) {
      const allow = [...Object.keys(methods), ...('GET' in methods ? ['HEAD'] : [])].join(', ')
      throw new GatewayError('http.method-not-allowed', `${request.method} is not allowed for this path`, {
        allow,
      })
    }
    return route({ request, environment, parameters, segment: exact ? '' : decoded(path.slice(end)) })
  }
}

/** @throws invalidRequest if the body is not JSON. */
export async function jsonBody({ environment }: RouteRequest): Promise<Json> {
  const body = parsedJson((await environment.body()).toString())
  if (body === undefined) throw invalidRequest('the body is not valid JSON')
  return body
}

/** A whole number of the query; undefined if it is absent. @throws badRequestData for any other text. */
export function wholeNumber(
  parameters: URLSearchParams,
  { name, min, max }: { readonly name: string; readonly min: number; readonly max: number },
): number | undefined {
  const text = parameters.get(name)
  if (text === null) return undefined
  const number = Number(text)
  if (/^\d{1,16}$/.test(text) && number >= min && number <= max) return number
  throw badRequestData(`must be a whole number from ${min} to ${max}`, name)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw badRequestData('is not valid percent-encoding', 'path')
  }
}
