/**
 * Operations over HTTP GET and POST, as specified in GraphQL over HTTP: one operation per request, and
 * content negotiation. GraphQL errors have status 200 in application/json, as in the original.
 */
import { type ExecutionArgs, GraphQLError, getOperationAST } from 'graphql'
import { type Response as Answer, createHandler, parseRequestParams, type RequestParams } from 'graphql-http'
import { GatewayError } from '#base/register/errors.ts'
import type { RouteEnvironment } from '#contract'
import type { Runner } from './runner.ts'

interface Raw {
  readonly environment: RouteEnvironment
}

export async function answerHttp(
  runner: Runner,
  request: Request,
  environment: RouteEnvironment,
): Promise<Response> {
  const handle = createHandler<Raw>({
    onSubscribe: (_request, parameters) => {
      const admitted = runner.admit(parameters, environment.signal)
      return ('schema' in admitted && isSubscription(admitted) ? [notHere()] : admitted) as never
    },
    execute: (args) => runner.run(args),
    parseRequestParams: (given) => parameters(given),
  })
  const [body, init]: Answer = await handle({
    method: request.method,
    url: request.url,
    headers: request.headers,
    body: async () => (await environment.body()).toString('utf8'),
    raw: { environment },
    context: undefined,
  })
  return body === null && init.status >= 400 ? refusal(init) : new Response(body, init)
}

const isSubscription = ({ document, operationName }: ExecutionArgs): boolean =>
  getOperationAST(document, operationName)?.operation === 'subscription'

const notHere = (): GraphQLError =>
  new GraphQLError(
    'Subscriptions are served at graphql/stream, with Accept: text/event-stream, or by WebSocket at graphql (graphql-transport-ws)',
    { extensions: { code: 'BAD_REQUEST' } },
  )

const reasons: Readonly<Record<number, string>> = {
  405: 'Use GET or POST',
  406: 'Accept application/json or application/graphql-response+json; subscriptions as text/event-stream are at graphql/stream',
  415: 'Send JSON, with Content-Type: application/json',
}

/** Adds a message where the library returns only a status. */
export function refusal(init: Answer[1]): Response {
  const message = reasons[init.status] ?? init.statusText
  const headers = { ...init.headers, 'Content-Type': 'application/json; charset=utf-8' }
  return new Response(JSON.stringify({ errors: [{ message }] }), { ...init, headers })
}

/** Rejects lists, which the library treats as an object without a query. */
async function parameters(
  request: Parameters<typeof parseRequestParams>[0],
): Promise<RequestParams | Answer> {
  const text =
    request.method === 'POST' && typeof request.body === 'function' ? await request.body() : undefined
  if (typeof text === 'string' && /^\s*\[/.test(text)) {
    throw new GatewayError(
      'ngsi-ld.invalid-request',
      'Send one operation per request; lists are not supported',
    )
  }
  return parseRequestParams(text === undefined ? request : { ...request, body: text })
}
