/**
 * Asking a gateway over HTTP, as any client would: a question, a deadline, the answer or why there is none.
 */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { GatewayError } from '#base/register/errors.ts'

export interface Question {
  readonly method?: string
  /** Sent as application/json, a text as it is. */
  readonly body?: unknown
  readonly contentType?: string
  readonly tenant?: string | undefined
  readonly deadlineMs?: number
  readonly accept?: string
  readonly token?: string | undefined
}

export interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

const usualDeadlineMs = 5000

/** @throws cli.no-answer when there is no answer; an answer of failure is an answer. */
export async function ask(
  url: string,
  { method = 'GET', body, contentType, accept, token, tenant, deadlineMs }: Question = {},
): Promise<Answer> {
  const bytes = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
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
      signal: AbortSignal.timeout(deadlineMs ?? usualDeadlineMs),
    })
  } catch (error) {
    const { message, cause, code } = error as NodeJS.ErrnoException
    const why = cause instanceof Error ? cause.message : message || String(code)
    throw new GatewayError('cli.no-answer', `no answer from ${url}: ${why}`, { url }, error)
  }
}

/** By node:http, which goes to every port; fetch refuses some. */
async function exchange(url: string, body: string | undefined, options: RequestOptions): Promise<Answer> {
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

/** The numbers of a Prometheus text exposition, by name; of a series with labels the sum. */
export function metricValues(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>()
  for (const [, name, value] of text.matchAll(/^([a-z_]+)(?:\{[^}]*\})? (\S+)$/gm)) {
    values.set(name!, (values.get(name!) ?? 0) + Number(value))
  }
  return values
}
