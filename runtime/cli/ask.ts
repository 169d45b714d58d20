/**
 * Asking a gateway over HTTP, as any client would: a question, a deadline, the answer or why there is none.
 */
import { GatewayError } from '#base/errors.ts'

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

/** @throws peer.unavailable when there is no answer; an answer of failure is an answer. */
export async function ask(
  url: string,
  { method = 'GET', body, contentType, accept, token, tenant, deadlineMs }: Question = {},
): Promise<Answer> {
  try {
    const response = await fetch(url, {
      method,
      headers: {
        ...(accept !== undefined && { accept }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(tenant !== undefined && { 'ngsild-tenant': tenant }),
        ...(body !== undefined && { 'content-type': contentType ?? 'application/json' }),
      },
      body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(deadlineMs ?? usualDeadlineMs),
    })
    return { status: response.status, text: await response.text(), headers: response.headers }
  } catch (error) {
    const { message, cause } = error as Error
    const why = cause instanceof Error ? cause.message : message
    throw new GatewayError('peer.unavailable', `no answer from ${url}: ${why}`, { url }, error)
  }
}

/** The numbers of a Prometheus text exposition, by name; of a series with labels the sum. */
export function metricValues(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>()
  for (const [, name, value] of text.matchAll(/^([a-z_]+)(?:\{[^}]*\})? (\S+)$/gm)) {
    values.set(name!, (values.get(name!) ?? 0) + Number(value))
  }
  return values
}
