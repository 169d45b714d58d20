/**
 * The OpenAPI description of the index and the summary at its root. Parameters come from `index-query.ts`.
 */
import { limits } from '#base/limits/limits.ts'
import { version } from '#base/register/version.ts'
import { ofBrokers, own } from './index-query.ts'

const text = { type: 'string' }
const json = (schema: object): object => ({ content: { 'application/json': { schema } } })
const problem = (detail: string): object => ({
  description: detail,
  ...json({ type: 'object', properties: { type: text, title: text, detail: text } }),
})
const mistake = (detail: string): object => ({
  description: detail,
  ...json({ type: 'object', properties: { status: { type: 'integer' }, message: text } }),
})

const details: Readonly<Record<string, string>> = {
  type: 'Entity types, as names of the platform or full IRIs.',
  q: 'Conditions; dots follow relationships: qoi:hasQuality.qoi:completeness>0.7.',
  georel: 'near;maxDistance==2000, within and so on, with geometry and coordinates.',
  timerel: 'before, after or between, with timeAt and endTimeAt.',
  timeproperty: 'lastSeen (or observedAt), or active.',
  search: 'Words in names, labels, descriptions and places; temp* is a prefix.',
  limit: `Entities per response: default ${limits.pageDefault.value}, at most ${limits.pageMax.value}.`,
  local: 'true: only entities of this gateway.',
}

const inQuery = (name: string): object => ({
  name,
  in: 'query',
  required: false,
  schema: text,
  description:
    details[name] ?? (ofBrokers.has(name) ? 'As in NGSI-LD; answered by a broker.' : 'As in NGSI-LD.'),
})
const header = (name: string, description: string): object => ({
  name,
  in: 'header',
  schema: text,
  description,
})

const headers = [
  header('Selvedge-Index-Position', 'latest, or a log number that the response must include.'),
  header('Selvedge-Index-Derived', 'true: add derived facts as urn:selvedge:ns:derived.'),
  header('NGSILD-Tenant', 'Requests for another tenant are answered by this gateway\u2019s own broker.'),
]
const id = { name: 'id', in: 'path', required: true, schema: text }
const parameters = [...[...own, ...ofBrokers].map(inQuery), ...headers]
const entities = {
  200: {
    description: 'Entities. Selvedge-Answered-By names who answered.',
    ...json({ type: 'array', items: { type: 'object' } }),
  },
  400: problem('An invalid or unknown parameter.'),
  403: problem('Too many results, or the query is too complex.'),
  422: problem('One part requires the index and another requires a broker.'),
  502: problem('A broker cannot be reached.'),
  504: problem('A broker does not answer in time.'),
}
const broker = { description: 'The broker.', ...json({ type: 'object' }) }

const info = {
  title: 'Indexing',
  version,
  description:
    'Finds streams, sensors, qualities, points, observed properties and platforms of this gateway and of registered brokers by ' +
    'place, time and theme. Forwards queries that it cannot answer to the brokers. Does not store histories.',
}

const paths = {
  '/': {
    get: {
      operationId: 'showIndex',
      summary: 'List the operations',
      responses: { 200: { description: 'Operations by path.', ...json({ type: 'object' }) } },
    },
  },
  '/ngsi-ld/v1/entities': {
    get: { operationId: 'queryIndex', summary: 'Query entities', parameters, responses: entities },
  },
  '/ngsi-ld/v1/entities/{id}': {
    get: {
      operationId: 'retrieveIndexed',
      summary: 'Retrieve one entity',
      parameters: [
        id,
        ...['pick', 'omit', 'attrs', 'options', 'format', 'type', 'local'].map(inQuery),
        ...headers,
      ],
      responses: {
        200: { description: 'The entity.', ...json({ type: 'object' }) },
        404: problem('No such entity.'),
      },
    },
  },
  '/ngsi-ld/v1/entityOperations/query': {
    post: {
      operationId: 'queryIndexByBody',
      summary: 'Query entities with a Query body',
      parameters: [...['limit', 'offset', 'count', 'options', 'local'].map(inQuery), ...headers],
      requestBody: { required: true, ...json({ type: 'object' }) },
      responses: entities,
    },
  },
  '/api/broker': {
    get: {
      operationId: 'listBrokers',
      summary: 'List the indexed brokers',
      responses: { 200: { description: '{count, result}', ...json({ type: 'object' }) } },
    },
    post: {
      operationId: 'registerBroker',
      summary: 'Register a broker',
      requestBody: {
        required: true,
        ...json({ type: 'object', required: ['host'], properties: { host: text, tenant: text } }),
      },
      responses: {
        201: broker,
        400: mistake('Not the address of a broker.'),
        409: mistake('The broker is this gateway, or is registered already.'),
        502: mistake('Not a broker, requires a token, or cannot be reached.'),
        504: mistake('The broker does not answer.'),
      },
    },
  },
  '/api/broker/{id}': {
    get: {
      operationId: 'showBroker',
      summary: 'Show one broker',
      parameters: [id],
      responses: { 200: broker, 404: mistake('No such broker.') },
    },
    delete: {
      operationId: 'forgetBroker',
      summary: 'Remove a broker from the index',
      parameters: [id],
      responses: { 204: { description: 'Removed.' }, 404: mistake('No such broker.') },
    },
  },
  '/api/notification/{purpose}/{callback}': {
    post: {
      operationId: 'takeNotification',
      summary: 'Receive a notification from a registered broker; the path has a secret',
      parameters: ['purpose', 'callback'].map((name) => ({ ...id, name })),
      requestBody: { required: true, ...json({ type: 'object' }) },
      responses: { 200: { description: 'Accepted.' }, 401: mistake('Wrong secret.') },
    },
  },
  '/api/health': {
    get: {
      operationId: 'indexHealth',
      summary: 'Show the positions of the index and the log',
      responses: { 200: { description: '{status, position, log}', ...json({ type: 'object' }) } },
    },
  },
  '/api/status': {
    get: {
      operationId: 'indexStatus',
      summary: 'Show the state of the index and its brokers',
      responses: { 200: { description: 'As shown by selvedge index status.', ...json({ type: 'object' }) } },
    },
  },
  '/api/rebuild': {
    post: {
      operationId: 'rebuildIndex',
      summary: 'Rebuild the index',
      responses: { 202: { description: 'The rebuild has started.', ...json({ type: 'object' }) } },
    },
  },
}

export const description: object = {
  openapi: '3.0.3',
  info,
  // Relative to the address of this description.
  servers: [{ url: '.' }],
  paths,
}

/** The operations, each path relative to the address of this document. */
export const overview: object = {
  ...info,
  openapi: 'openapi.json',
  operations: Object.fromEntries(
    Object.entries<Readonly<Record<string, { readonly summary: string }>>>(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { summary }]) => [
        `${method.toUpperCase()} ${path.slice(1) || '.'}`,
        summary,
      ]),
    ),
  ),
}
