/**
 * Who stands for a server that is away, or between it and its clients: load balancers that fail, pages of an ingress, a login or a
 * captive portal, and answers that say less than what was done. Nothing is passed on but what a 207 took.
 */
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { gunzipSync } from 'node:zlib'

/**
 * - a number: this HTTP status; 207 passes on all items of a batch but one, and says that this one failed with 503
 * - ingress: 404 with a page, for all there is
 * - login: 302 to a page elsewhere
 * - portal: 200 with a page
 * - portal-json: 200 with an object that says nothing of what was asked
 * - portal-empty: 200 and nothing
 * - firewall: 400 with a page
 * - wait: 503 with Retry-After
 * - hole: passes on all items of a batch but one in three, and answers 207 that names only what was taken
 */
export type Standing = 429 | 500 | 503 | 207 | Odd

type Odd = 'ingress' | 'login' | 'portal' | 'portal-json' | 'portal-empty' | 'firewall' | 'wait' | 'hole'

/** Those that no server says of itself. */
export const oddAnswers: readonly Odd[] = [
  'ingress',
  'login',
  'portal',
  'portal-json',
  'portal-empty',
  'firewall',
  'wait',
  'hole',
]

export const isStanding = (fault: unknown): fault is Standing =>
  typeof fault === 'number' || oddAnswers.some((odd) => odd === fault)

type Page = readonly [status: number, headers: Readonly<Record<string, string>>, body: string]

const html = { 'content-type': 'text/html' }
const asked = JSON.stringify({ title: 'A fault that was asked for' })
const pages: Readonly<Record<Exclude<Odd, 'hole'>, Page>> = {
  ingress: [404, html, '<html><body>default backend - 404</body></html>'],
  login: [302, { ...html, location: 'https://login.example.org/?back=1' }, '<html>Found</html>'],
  portal: [200, html, '<html><body>Welcome to our wireless network</body></html>'],
  'portal-json': [200, { 'content-type': 'application/json' }, '{"login":"https://login.example.org"}'],
  'portal-empty': [200, {}, ''],
  firewall: [400, html, '<html><body>The request was blocked</body></html>'],
  wait: [503, { 'retry-after': '1' }, asked],
}

export interface Target {
  readonly host: string
  readonly port: number
}

/** Answers for the server; of what ends with 207, everything but some items goes to it. */
export async function answerFor(
  incoming: IncomingMessage,
  response: ServerResponse,
  { as, target }: { readonly as: Standing; readonly target: Target },
): Promise<void> {
  const chunks: Buffer[] = []
  incoming.on('error', () => undefined)
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const items = as === 207 || as === 'hole' ? itemsOf(incoming, Buffer.concat(chunks)) : undefined
  if (items === undefined) {
    const [status, headers, body] = pageOf(as)
    response.writeHead(status, headers)
    return void response.end(body)
  }
  const middle = items.length >> 1
  const rest = items.filter((_, i) => (as === 207 ? i !== middle : i % 3 !== 1 && items.length > 1))
  const taken = rest.length === 0 ? 201 : await passOn(incoming, JSON.stringify(rest), target)
  if (taken >= 300) {
    response.writeHead(503)
    return void response.end()
  }
  const error = { type: 'about:blank', title: 'A fault that was asked for', status: 503 }
  const errors = as === 207 ? [{ entityId: idOf(items[middle]!), error }] : []
  response.writeHead(207, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ success: rest.map(idOf), errors }))
}

function pageOf(as: Standing): Page {
  if (as === 207 || as === 'hole') return [503, {}, asked]
  if (typeof as === 'string') return pages[as]
  return [as, as === 429 ? { 'retry-after': '1' } : {}, asked]
}

const idOf = (item: unknown): string => (typeof item === 'string' ? item : (item as { id: string }).id)

/** The items of a batch operation; undefined of any other request. */
function itemsOf(incoming: IncomingMessage, body: Buffer): readonly unknown[] | undefined {
  if (!incoming.url?.includes('/entityOperations/')) return undefined
  try {
    const text = incoming.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
    const items = JSON.parse(text.toString()) as unknown
    return Array.isArray(items) && items.length > 0 ? items : undefined
  } catch {
    return undefined
  }
}

/** The status of the same request with another body; 599 where nobody answers. */
function passOn(incoming: IncomingMessage, body: string, target: Target): Promise<number> {
  const headers = { ...incoming.headers, 'content-length': String(Buffer.byteLength(body)) }
  delete headers['transfer-encoding']
  delete headers['content-encoding']
  return new Promise((resolve) => {
    const passed = request(
      { ...target, method: incoming.method ?? 'POST', path: incoming.url ?? '/', headers, agent: false },
      (answer) => {
        answer.resume()
        // Where single items fail over there, what is told here would be wrong.
        resolve(answer.statusCode === 207 ? 599 : (answer.statusCode ?? 599))
      },
    )
    passed.on('error', () => resolve(599))
    passed.end(body)
  })
}
