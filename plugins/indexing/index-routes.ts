/**
 * Routes of the index: queries, single entities (answered by `answering.ts`) and operator requests.
 * Serializes answers here, except for callers in this process, which receive objects.
 */
import { withoutTrailingSlashes } from '#base/load/trailing-slashes.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json, ListRequest, RouteEnvironment } from '#contract'
import { isObject, type JsonObject, listOf, parsedJson, textsOf } from '#ngsi-ld/values/json.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import {
  type AnsweringPorts,
  createAnswering,
  entitiesPath,
  type IndexReply,
} from '#plugins/indexing/query/answering.ts'
import { overview } from '#plugins/indexing/query/openapi-index.ts'

export interface RoutePorts extends AnsweringPorts {
  readonly status: () => object
  /** Starts to rebuild the index. */
  readonly rebuild: () => Promise<void>
}

export function createIndexRoutes(ports: RoutePorts) {
  const { query, retrieve } = createAnswering(ports)

  return Object.freeze({
    /** Answers a query from inside this process. Returns undefined for other paths. */
    async list({ path, headers, signal }: ListRequest): Promise<IndexReply | undefined> {
      if (!path.startsWith(`${entitiesPath}?`)) return undefined
      return query({ headers, signal }, parametersOf(new URL(path, 'http://index')))
    },

    async fetch(request: Request, environment: RouteEnvironment): Promise<Response> {
      const url = new URL(request.url)
      const requester = { headers: request.headers, signal: environment.signal }
      const path = withoutTrailingSlashes(url.pathname)
      const only = (method: string): void => {
        if (request.method !== method && !(method === 'GET' && request.method === 'HEAD'))
          throw new GatewayError(
            'http.method-not-allowed',
            `${request.method} is not allowed for this path`,
            {
              allow: method,
            },
          )
      }
      if (path === '') {
        only('GET')
        return Response.json(overview)
      }
      if (path === entitiesPath) {
        only('GET')
        return written(await query(requester, parametersOf(url)))
      }
      if (path === '/ngsi-ld/v1/entityOperations/query') {
        only('POST')
        const body = await bodyOf(environment)
        return written(await query(requester, new Map([...parametersOf(url), ...body])))
      }
      const [, id] = /^\/ngsi-ld\/v1\/entities\/([^/]+)$/.exec(path) ?? []
      if (id !== undefined) {
        only('GET')
        return written(await retrieve(requester, decodeURIComponent(id), parametersOf(url)))
      }
      if (path.startsWith('/ngsi-ld/v1/temporal'))
        throw new GatewayError('indexing.no-history', 'histories are not indexed')
      if (path === '/api/health') {
        only('GET')
        return Response.json({
          status: 'UP',
          position: ports.own.position() ?? null,
          log: ports.changes.position(),
        })
      }
      if (path === '/api/status') {
        only('GET')
        return Response.json(ports.status())
      }
      if (path === '/api/rebuild') {
        only('POST')
        await ports.rebuild()
        return Response.json(ports.status(), { status: 202 })
      }
      throw new GatewayError('http.no-route', `the index has no resource at ${url.pathname}`)
    },
  })
}

function written(reply: IndexReply): Response {
  return 'text' in reply
    ? new Response(reply.text, reply)
    : new Response(JSON.stringify(reply.items), { headers: reply.headers })
}

function parametersOf(url: URL): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const [name, value] of url.searchParams) {
    if (parameters.has(name)) throw invalidRequest(`query parameter ${name} is given twice`)
    parameters.set(name, value)
  }
  return parameters
}

/** Maps a query body to parameters: one entity selector, and members with the same name in both forms. */
async function bodyOf(environment: RouteEnvironment): Promise<Map<string, string>> {
  const body = parsedJson((await environment.body()).toString())
  if (body === undefined) throw invalidRequest('the body is not valid JSON')
  if (!isObject(body)) throw badRequestData('must be a JSON object', 'body')
  const parameters = new Map<string, string>()
  for (const [member, value] of Object.entries(body)) {
    if (member === 'type' && value === 'Query') continue
    const within = groups.get(member)
    if (within !== undefined) {
      for (const [name, part] of Object.entries(groupOf(value, member))) {
        if (!within.includes(name)) throw unread(`${member}.${name}`)
        const text = member === 'entities' ? listed(part, `entities.${name}`) : asParameter(part)
        parameters.set(name, text)
      }
    } else if (bodyMembers.has(member)) parameters.set(member, listed(value, member))
    else throw unread(member)
  }
  return parameters
}

const unread = (field: string): Error =>
  badRequestData('is not a query member that the index supports', field)

const bodyMembers: ReadonlySet<string> = new Set(['attrs', 'pick', 'omit', 'q', 'scopeQ', 'search'])
const groups: ReadonlyMap<string, readonly string[]> = new Map([
  ['entities', ['id', 'idPattern', 'type']],
  ['geoQ', ['georel', 'geometry', 'coordinates', 'geoproperty']],
  ['temporalQ', ['timerel', 'timeAt', 'endTimeAt', 'timeproperty']],
])

const asParameter = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** Joins a string or a list of strings with commas. */
function listed(value: Json, field: string): string {
  const texts = textsOf(value)
  if (texts.length === 0 || texts.length < listOf(value).length)
    throw badRequestData('must be a string or a list of strings', field)
  return texts.join()
}

function groupOf(value: Json, member: string): JsonObject {
  if (member !== 'entities') {
    if (isObject(value)) return value
    throw badRequestData('must be an object', member)
  }
  const [one, ...more] = listOf(value)
  if (!isObject(one) || more.length > 0) throw badRequestData('must hold exactly one selector', member)
  return one
}
