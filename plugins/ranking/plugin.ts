/**
 * The ranking plugin and its routes. Ranks queries with weights; forwards all other requests to its backend
 * unchanged.
 */

import { limits } from '#base/limits/limits.ts'
import { createConcurrencyLimit } from '#base/load/concurrency-limit.ts'
import { withoutTrailingSlashes } from '#base/load/trailing-slashes.ts'
import { GatewayError } from '#base/register/errors.ts'
import { version } from '#base/register/version.ts'
import { type BrokerPort, definePlugin, type Host, type RouteEnvironment } from '#contract'
import { answerOf, failedAnswer, failureStatus, passedAnswer, rankedAnswer, unweighted } from './answer.ts'
import { createBackend, entitiesPath } from './backend.ts'
import { description } from './description.ts'
import { explorer } from './explorer.ts'
import { parseRankedQuery, splitQuery } from './ranked-query.ts'
import { createRanking } from './ranking.ts'

export interface RankingSettings {
  /** `indexing` or `mdr` of this gateway, or the address of a broker. */
  readonly backend: string
  readonly timeoutMs: number
  readonly tokenFile?: string | undefined
}

const needs = ['mdr', 'component', 'remote'] as const
type RankingHost = Host<RankingSettings, (typeof needs)[number]>

export default definePlugin<RankingSettings, (typeof needs)[number]>({
  name: 'ranking',
  version,
  summary: 'Entities ordered by a weighted sum over properties named by the client.',
  needs,
  start(host) {
    const port = backendOf(host)
    const requests = createRequests(host, port)
    return {
      // These have no data; the page prompts for the token that other routes require.
      open: ['/', '/spec'],
      description,
      fetch: (request, environment) => route(request, environment, requests),
      status: () => ({ backend: port.address }),
      close: port.close,
    }
  },
})

function backendOf(host: RankingHost): BrokerPort & { close(): void } {
  const { backend, tokenFile } = host.settings
  const port = backend === 'mdr' ? host.mdr : backend === 'indexing' ? host.component('indexing') : undefined
  if (port === undefined) return host.remote({ url: backend, tokenFile, isConfigured: true })
  return {
    get address() {
      return port.address
    },
    exchange: port.exchange,
    ...(port.list !== undefined && { list: port.list }),
    close: () => {},
  }
}

/** Requests to the backend: ranked, and forwarded unchanged. */
type BackendRequests = ReturnType<typeof createRequests>

function createRequests(host: RankingHost, port: BrokerPort) {
  const { settings, clock, context } = host
  const backend = createBackend(port, clock.monotonic)
  const ranking = createRanking({ backend, clock, context })
  const isElsewhere = settings.backend !== 'mdr' && settings.backend !== 'indexing'
  const concurrency = createConcurrencyLimit({
    // Two that read from this process would only take turns and hold twice the memory.
    atOnce: isElsewhere ? limits.rankingAtOnce.value : 1,
    waitingMax: limits.rankingWaitingMax.value,
    what: 'ranked queries',
  })
  const hidden = new Set([...unsent, ...(isElsewhere ? credentials : [])])
  const sent = (headers: Headers, without = hidden): Record<string, string> =>
    Object.fromEntries([...headers].filter(([name]) => !without.has(name)))
  const unconditional = new Set([...hidden, ...conditional])

  function checkLoop(): void {
    if (isLoop(host, port.address))
      throw new GatewayError('peer.loop', 'ranking.backend must not be the address of the ranking itself')
  }

  async function plain(path: string, headers: Headers, signal: AbortSignal): Promise<Response> {
    checkLoop()
    const { timeoutMs } = settings
    return answerOf(await port.exchange({ method: 'GET', path, headers: sent(headers), signal, timeoutMs }))
  }

  return Object.freeze({
    plain,
    async ranked(url: URL, headers: Headers, signal: AbortSignal): Promise<Response> {
      const split = splitQuery(url.search.slice(1))
      if (split.weights.length === 0) {
        const query = split.others.length === 0 ? '' : `?${split.others.join('&')}`
        return unweighted(await plain(`${entitiesPath}${query}`, headers, signal), [...split.own.keys()])
      }
      checkLoop()
      const rankedQuery = parseRankedQuery(split)
      return concurrency.run(signal, async () => {
        const until = clock.monotonic() + settings.timeoutMs
        const found = await ranking.rank(rankedQuery, {
          headers: sent(headers, unconditional),
          signal,
          until,
        })
        if (found.kind === 'ranked') return rankedAnswer(rankedQuery, found)
        if (found.kind === 'refused') return passedAnswer(found.answer)
        return failedAnswer(failureStatus[found.kind], found.reason)
      })
    },
  })
}

/** Headers of the connection, or of a body, which GET does not have. */
const unsent = [
  'host',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'proxy-authorization',
  'content-length',
  'content-type',
  'expect',
  'accept-encoding',
]
/** Credentials for this gateway; a remote backend receives those of the settings. */
const credentials = ['authorization', 'x-auth-token', 'cookie']
/** Conditions on the backend's list do not apply to the ranked list. */
const conditional = ['if-none-match', 'if-match', 'if-modified-since', 'range']

/** Whether an address is that of the ranking itself, under any name of this machine. */
function isLoop({ isOwn, addresses }: RankingHost, address: string): boolean {
  if (!isOwn(address)) return false
  const placeOf = (url: string): string => {
    const { port, pathname } = new URL(url)
    return `${port}${withoutTrailingSlashes(pathname)}`
  }
  return addresses().some((own) => placeOf(own) === placeOf(address))
}

async function route(
  request: Request,
  { signal }: RouteEnvironment,
  requests: BackendRequests,
): Promise<Response> {
  const url = new URL(request.url)
  const answer = routeOf(url)
  if (answer === undefined)
    throw new GatewayError('http.no-route', `no resource at ${url.pathname}; see /spec`)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    const detail = `${request.method} is not allowed; the ranking is read-only`
    throw new GatewayError('http.method-not-allowed', detail, { allow: 'GET, HEAD' })
  }
  const response = await answer(requests, { url, headers: request.headers, signal })
  if (request.method === 'GET') return response
  return new Response(null, { status: response.status, headers: response.headers })
}

type Answer = (
  requests: BackendRequests,
  request: { url: URL; headers: Headers; signal: AbortSignal },
) => Response | Promise<Response>

function routeOf({ pathname }: URL): Answer | undefined {
  const path = withoutTrailingSlashes(pathname)
  if (path === '') return () => text(explorer, 'text/html; charset=utf-8')
  if (path === '/api/health') return () => text('{"status":"UP"}', 'application/json')
  if (path === '/spec') return () => text(JSON.stringify(description), 'application/json')
  if (path === entitiesPath)
    return (requests, { url, headers, signal }) => requests.ranked(url, headers, signal)
  if (/^\/ngsi-ld\/v1\/entities\/[^/]+$/.test(path))
    return (requests, { url, headers, signal }) => requests.plain(`${path}${url.search}`, headers, signal)
  return undefined
}

const text = (body: string, type: string): Response =>
  new Response(body, { headers: { 'Content-Type': type } })
