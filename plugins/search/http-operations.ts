/**
 * Operations over HTTP, GET and POST, as GraphQL over HTTP says: one operation per request, the media type as the client
 * accepts it. Errors of GraphQL are 200 in application/json, as the originals answered.
 */
import { type Response as Answer, createHandler, parseRequestParams, type RequestParams } from 'graphql-http'
import { GatewayError } from '#base/errors.ts'
import type { RouteEnvironment } from '#contract'
import type { Runner } from './engine.ts'

interface Raw {
  readonly environment: RouteEnvironment
}

export async function answerHttp(
  runner: Runner,
  request: Request,
  environment: RouteEnvironment,
): Promise<Response> {
  const handle = createHandler<Raw>({
    onSubscribe: (_request, parameters) => runner.admit(parameters, environment.signal) as never,
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
  return new Response(body, init)
}

/** The library takes a list for an object without a query. */
async function parameters(
  request: Parameters<typeof parseRequestParams>[0],
): Promise<RequestParams | Answer> {
  const text =
    request.method === 'POST' && typeof request.body === 'function' ? await request.body() : undefined
  if (typeof text === 'string' && /^\s*\[/.test(text)) {
    throw new GatewayError(
      'ngsi-ld.invalid-request',
      'Send one operation per request; a list of them is not taken',
    )
  }
  return parseRequestParams(text === undefined ? request : { ...request, body: text })
}
