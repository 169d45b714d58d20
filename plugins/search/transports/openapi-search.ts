/**
 * The OpenAPI description of the search enabler: its GraphQL endpoints. Introspection describes types and
 * fields.
 */
import { version } from '#base/register/version.ts'

const text = { type: 'string' }
const operation = {
  type: 'object',
  required: ['query'],
  properties: { query: text, operationName: text, variables: { type: 'object' } },
}
const body = { required: true, content: { 'application/json': { schema: operation } } }
const inQuery = ['query', 'operationName', 'variables'].map((name) => ({
  name,
  in: 'query',
  required: name === 'query',
  schema: text,
}))
const result = {
  type: 'object',
  properties: { data: { type: 'object' }, errors: { type: 'array', items: { type: 'object' } } },
}
const answers = {
  200: {
    description: 'The result, with its errors.',
    content: {
      'application/json': { schema: result },
      'application/graphql-response+json': { schema: result },
    },
  },
  400: { description: 'Not a GraphQL operation.' },
}
const events = {
  200: {
    description: 'Events next and complete (graphql-sse, one connection each).',
    content: { 'text/event-stream': { schema: text } },
  },
}

export const description: object = {
  openapi: '3.0.3',
  info: {
    title: 'Search',
    version,
    description: 'GraphQL over streams, sensors, platforms, observations, quality and events.',
  },
  // Relative to the address of this description.
  servers: [{ url: '.' }],
  paths: {
    '/': {
      get: { operationId: 'ide', summary: 'Show the IDE', responses: { 200: { description: 'HTML' } } },
    },
    '/graphql': {
      get: {
        operationId: 'askByAddress',
        summary: 'Execute a query; with WebSocket (graphql-transport-ws) also subscriptions',
        parameters: inQuery,
        responses: answers,
      },
      post: { operationId: 'ask', summary: 'Execute a query', requestBody: body, responses: answers },
    },
    '/graphql/stream': {
      get: {
        operationId: 'subscribeByAddress',
        summary: 'Subscribe',
        parameters: inQuery,
        responses: events,
      },
      post: { operationId: 'subscribe', summary: 'Subscribe', requestBody: body, responses: events },
    },
    '/version': {
      get: {
        operationId: 'searchVersion',
        summary: 'Show the version',
        responses: { 200: { description: 'A text', content: { 'application/json': { schema: text } } } },
      },
    },
  },
}
