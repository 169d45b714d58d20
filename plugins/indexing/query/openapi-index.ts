/** The OpenAPI description of the index, and what its root shows of it; its parameters are those that questions know. */
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
  type: 'Types of entities, as names of the platform or full IRIs.',
  q: 'Conditions, with dots through relationships: qoi:hasQuality.qoi:completeness>0.7.',
  georel: 'near;maxDistance==2000, within and the others, with geometry and coordinates.',
  timerel: 'before, after or between, with timeAt and endTimeAt.',
  timeproperty: 'lastSeen (or observedAt), or active.',
  search: 'Words in names, labels, descriptions and places; temp* is the beginning of one.',
  limit: `Entities of one answer: ${limits.pageDefault.value}, at most ${limits.pageMax.value}.`,
  local: 'true: only what this gateway has itself.',
}

const inQuery = (name: string): object => ({
  name,
  in: 'query',
  required: false,
  schema: text,
  description: details[name] ?? (ofBrokers.has(name) ? 'As in NGSI-LD; a broker answers.' : 'As in NGSI-LD.'),
})
const header = (name: string, description: string): object => ({
  name,
  in: 'header',
  schema: text,
  description,
})

const headers = [
  header('Selvedge-Index-Position', 'latest, or a log number that the answer has to include.'),
  header('Selvedge-Index-Derived', 'true: with what the index derives, as urn:selvedge:ns:derived.'),
  header('NGSILD-Tenant', 'Another tenant is answered by this gateway\u2019s own broker.'),
]
const id = { name: 'id', in: 'path', required: true, schema: text }
const parameters = [...[...own, ...ofBrokers].map(inQuery), ...headers]
const entities = {
  200: {
    description: 'Entities. Selvedge-Answered-By tells who answered.',
    ...json({ type: 'array', items: { type: 'object' } }),
  },
  400: problem('A parameter that cannot be used, or that nobody knows.'),
  403: problem('Too many results, or too complex.'),
  422: problem('Only the index knows one part of it, and only a broker another.'),
  502: problem('A broker that is asked cannot be reached.'),
  504: problem('A broker that is asked does not answer.'),
}
const broker = { description: 'The broker.', ...json({ type: 'object' }) }

const info = {
  title: 'Indexing',
  version,
  description:
    'Finds streams, sensors, qualities, points, observed properties and platforms of this gateway and of registered brokers by place, ' +
    'time and theme. What it cannot answer goes to the brokers. There are no histories.',
}

const paths = {
  '/': {
    get: {
      operationId: 'showIndex',
      summary: 'What there is',
      responses: { 200: { description: 'Operations by path.', ...json({ type: 'object' }) } },
    },
  },
  '/ngsi-ld/v1/entities': {
    get: { operationId: 'queryIndex', summary: 'Entities that match', parameters, responses: entities },
  },
  '/ngsi-ld/v1/entities/{id}': {
    get: {
      operationId: 'retrieveIndexed',
      summary: 'One entity',
      parameters: [
        id,
        ...['pick', 'omit', 'attrs', 'options', 'format', 'type', 'local'].map(inQuery),
        ...headers,
      ],
      responses: {
        200: { description: 'The entity.', ...json({ type: 'object' }) },
        404: problem('There is none.'),
      },
    },
  },
  '/ngsi-ld/v1/entityOperations/query': {
    post: {
      operationId: 'queryIndexByBody',
      summary: 'Entities that match a Query',
      parameters: [...['limit', 'offset', 'count', 'options', 'local'].map(inQuery), ...headers],
      requestBody: { required: true, ...json({ type: 'object' }) },
      responses: entities,
    },
  },
  '/api/broker': {
    get: {
      operationId: 'listBrokers',
      summary: 'Brokers that are indexed',
      responses: { 200: { description: '{count, result}', ...json({ type: 'object' }) } },
    },
    post: {
      operationId: 'registerBroker',
      summary: 'Indexes another broker',
      requestBody: {
        required: true,
        ...json({ type: 'object', required: ['host'], properties: { host: text, tenant: text } }),
      },
      responses: {
        201: broker,
        400: mistake('No address of a broker.'),
        409: mistake('This gateway itself, or registered already.'),
        502: mistake('No broker, one that wants a token, or one that cannot be reached.'),
        504: mistake('It does not answer.'),
      },
    },
  },
  '/api/broker/{id}': {
    get: {
      operationId: 'showBroker',
      summary: 'One broker',
      parameters: [id],
      responses: { 200: broker, 404: mistake('There is none.') },
    },
    delete: {
      operationId: 'forgetBroker',
      summary: 'Indexes it no longer',
      parameters: [id],
      responses: { 204: { description: 'It is forgotten.' }, 404: mistake('There is none.') },
    },
  },
  '/api/notification/{purpose}/{callback}': {
    post: {
      operationId: 'takeNotification',
      summary: 'What a registered broker tells; the path carries a secret',
      parameters: ['purpose', 'callback'].map((name) => ({ ...id, name })),
      requestBody: { required: true, ...json({ type: 'object' }) },
      responses: { 200: { description: 'It is taken.' }, 401: mistake('The secret is another one.') },
    },
  },
  '/api/health': {
    get: {
      operationId: 'indexHealth',
      summary: 'Positions of the index and of the log',
      responses: { 200: { description: '{status, position, log}', ...json({ type: 'object' }) } },
    },
  },
  '/api/status': {
    get: {
      operationId: 'indexStatus',
      summary: 'What is indexed of whom',
      responses: { 200: { description: 'As selvedge index status tells.', ...json({ type: 'object' }) } },
    },
  },
  '/api/rebuild': {
    post: {
      operationId: 'rebuildIndex',
      summary: 'Builds the index anew',
      responses: { 202: { description: 'It begins.', ...json({ type: 'object' }) } },
    },
  },
}

export const description: object = {
  openapi: '3.0.3',
  info,
  // Relative to where this description was read.
  servers: [{ url: '.' }],
  paths,
}

/** What there is, each path relative to where this was read. */
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
