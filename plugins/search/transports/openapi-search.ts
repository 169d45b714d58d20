/** The OpenAPI description of the search enabler: the ways to its GraphQL. Types and fields are told by introspection. */
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
  400: { description: 'No operation of GraphQL.' },
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
  // Relative to where this description was read.
  servers: [{ url: '.' }],
  paths: {
    '/': {
      get: { operationId: 'ide', summary: 'A page to ask with', responses: { 200: { description: 'HTML' } } },
    },
    '/graphql': {
      get: {
        operationId: 'askByAddress',
        summary: 'Asks; by WebSocket (graphql-transport-ws) subscribes, too',
        parameters: inQuery,
        responses: answers,
      },
      post: { operationId: 'ask', summary: 'Asks', requestBody: body, responses: answers },
    },
    '/graphql/stream': {
      get: {
        operationId: 'subscribeByAddress',
        summary: 'Subscribes',
        parameters: inQuery,
        responses: events,
      },
      post: { operationId: 'subscribe', summary: 'Subscribes', requestBody: body, responses: events },
    },
    '/version': {
      get: {
        operationId: 'searchVersion',
        summary: 'Its version',
        responses: { 200: { description: 'A text', content: { 'application/json': { schema: text } } } },
      },
    },
  },
}
