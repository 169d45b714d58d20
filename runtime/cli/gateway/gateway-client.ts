/**
 * Sends HTTP requests to a gateway, as any client would, with a deadline.
 */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { GatewayError } from '#base/register/errors.ts'

export interface GatewayRequest {
  readonly method?: string
  /** Sent as JSON; texts and bytes are sent unchanged. */
  readonly body?: unknown
  readonly contentType?: string
  readonly tenant?: string | undefined
  readonly deadlineMs?: number
  readonly accept?: string
  readonly token?: string | undefined
}

export interface GatewayResponse {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

const defaultDeadlineMs = 5000

/** @throws cli.no-answer if there is no response; an error status is a response. */
export async function sendRequest(
  url: string,
  { method = 'GET', body, contentType, accept, token, tenant, deadlineMs }: GatewayRequest = {},
): Promise<GatewayResponse> {
  const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
  const bytes = isRaw ? body : JSON.stringify(body)
  try {
    return await exchange(url, bytes, {
      method,
      headers: {
        ...(accept !== undefined && { accept }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(tenant !== undefined && { 'ngsild-tenant': tenant }),
        ...(bytes !== undefined && {
          'content-type': contentType ?? 'application/json',
          'content-length': Buffer.byteLength(bytes),
        }),
      },
      signal: AbortSignal.timeout(deadlineMs ?? defaultDeadlineMs),
    })
  } catch (error) {
    const { message, cause, code } = error as NodeJS.ErrnoException
    const why = cause instanceof Error ? cause.message : message || String(code)
    throw new GatewayError('cli.no-answer', `no answer from ${url}: ${why}`, { url }, error)
  }
}

/** Uses node:http, because fetch refuses some ports. */
async function exchange(
  url: string,
  body: string | Uint8Array | undefined,
  options: RequestOptions,
): Promise<GatewayResponse> {
  const request = (url.startsWith('https:') ? httpsRequest : httpRequest)(url, { ...options, agent: false })
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.on('response', resolve).on('error', reject)
    request.end(body)
  })
  const headers = new Headers()
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined) headers.set(name, String(value))
  return { status: response.statusCode ?? 0, text: await text(response), headers }
}

/** The values of a Prometheus text exposition by name; values of series with labels are summed. */
export function metricValues(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>()
  for (const [, name, value] of text.matchAll(/^([a-z_]+)(?:\{[^}]*\})? (\S+)$/gm)) {
    values.set(name!, (values.get(name!) ?? 0) + Number(value))
  }
  return values
}
