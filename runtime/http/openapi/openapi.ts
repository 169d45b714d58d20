/**
 * Builds the OpenAPI 3.1 description of the served routes from the register of operations.
 */
import { productToken, version } from '#base/register/version.ts'
import { answerTypes } from '#http/request/negotiate.ts'
import { parameters } from '#http/request/query-parameters.ts'
import type { OperationDescription } from './operation.ts'
import { operations } from './operations.ts'
import { type OpenApiNode, type SchemaName, schemas, text } from './schemas.ts'

/** A path and its methods. */
export interface RouteEntry {
  readonly path: string
  readonly methods: readonly string[]
}

export const ngsiLdPrefix = '/ngsi-ld/'

export function openApiOf(routes: readonly RouteEntry[]): OpenApiNode {
  const paths = routes.map(({ path, methods }) => {
    const items = methods.map((method) => {
      const operation = operations[`${method} ${path}`] ?? notDescribed
      return [method.toLowerCase(), describe(path, method, operation)] as const
    })
    return [path.replaceAll(/:(\w+)/g, '{$1}'), Object.fromEntries(items)] as const
  })
  return {
    openapi: '3.1.0',
    info: { title: 'Selvedge', version, description: `NGSI-LD API of ${productToken}` },
    paths: Object.fromEntries(paths),
    components: {
      schemas,
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
    security: [{}, { token: [] }],
  }
}

/** Entry for a route missing from the register; a test reports it. */
const notDescribed: OperationDescription = {
  tag: 'Others',
  summary: 'Not described',
  answers: {},
  parameters: [],
}

function describe(
  path: string,
  method: string,
  { tag, summary, body, answers, ...more }: OperationDescription,
): OpenApiNode {
  const isNgsiLd = path.startsWith(ngsiLdPrefix)
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: text,
  }))
  const inQuery = more.parameters.map((name) => {
    const [description, type = 'string'] = parameters[name]!
    return { name, in: 'query', description, schema: { type } }
  })
  return {
    tags: [tag],
    summary,
    operationId: `${method.toLowerCase()}${path.replaceAll(/[/:.-]+(\w?)/g, (_, first: string) => first.toUpperCase())}`,
    parameters: [...inPath, ...inQuery, ...(isNgsiLd ? headers : [])],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: contentOf(body, bodyTypesOf(path, method)) } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, of]) => [status, answerOf(Number(status), of, isNgsiLd)]),
      ),
      ...Object.fromEntries(
        failuresOf(isNgsiLd, method, body !== undefined).map((status) => [status, problem]),
      ),
    },
  }
}

const headers = [
  {
    name: 'NGSILD-Tenant',
    in: 'header',
    description: 'Tenant; without it, the default tenant',
    schema: text,
  },
  { name: 'Link', in: 'header', description: 'Names the @context if the body does not', schema: text },
]

/** Models are uploaded as tar archives. */
const modelsPath = '/selvedge/v1/models'

/** Clients also append with a merge patch. */
const appendPath = `${ngsiLdPrefix}v1/entities/:id/attrs`

function bodyTypesOf(path: string, method: string): readonly string[] {
  if (path === modelsPath) return ['application/x-tar']
  if (!path.startsWith(ngsiLdPrefix)) return ['application/senml+json', 'application/senml+cbor']
  const types = ['application/json', 'application/ld+json']
  const mayPatch = method === 'PATCH' || path === appendPath
  return mayPatch ? [...types, 'application/merge-patch+json'] : types
}

const schemaOf = (of: SchemaName | readonly [SchemaName]): OpenApiNode =>
  typeof of === 'string'
    ? { $ref: `#/components/schemas/${of}` }
    : { type: 'array', items: { $ref: `#/components/schemas/${of[0]}` } }

const contentOf = (of: SchemaName | readonly [SchemaName], types: readonly string[]): OpenApiNode =>
  Object.fromEntries(types.map((type) => [type, { schema: schemaOf(of) }]))

function answerOf(
  status: number,
  of: SchemaName | readonly [SchemaName] | null,
  isNgsiLd: boolean,
): OpenApiNode {
  const description = successes[status] ?? 'Done'
  if (of === null) return { description }
  const isElement = isNgsiLd && (status === 200 || status === 206)
  const types = of === 'Text' ? ['text/plain'] : isElement ? answerTypes : ['application/json']
  return { description, content: contentOf(of, types) }
}

const successes: Readonly<Record<number, string>> = {
  200: 'Success',
  101: 'The connection becomes a WebSocket',
  201: 'Created; Location has the address',
  204: 'Done',
  206: 'Partial content; Content-Range has the range',
  207: 'Partial success; the body lists the failures',
}

const problem: OpenApiNode = {
  description: 'Error',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
}

function failuresOf(isNgsiLd: boolean, method: string, hasBody: boolean): readonly number[] {
  if (!isNgsiLd) return hasBody ? [400, 413, 415] : []
  return [400, 401, 404, ...(method === 'GET' ? [406] : [409]), ...(hasBody ? [413, 415] : []), 503, 504]
}
