/**
 * The ranking component: the wiring of its routes. A query with weights is ranked; everything else that it serves is passed to
 * its backend and back as it is.
 */

import { limits } from '#base/limits/limits.ts'
import { createConcurrencyLimit } from '#base/load/concurrency-limit.ts'
import { GatewayError } from '#base/register/errors.ts'
import { version } from '#base/register/version.ts'
import { type BrokerPort, definePlugin, type Host, type RouteEnvironment } from '#contract'
import { answerOf, failedAnswer, failureStatus, passedAnswer, rankedAnswer, unweighted } from './answer.ts'
import { createBackend, entitiesPath } from './backend.ts'
import { description } from './description.ts'
import { explorer } from './explorer.ts'
import { parseQuestion, splitQuery } from './ranked-query.ts'
import { createRanking } from './ranking.ts'

export interface RankingSettings {
  /** `indexing` or `mdr`: of this gateway; else the address of a broker. */
  readonly backend: string
  readonly timeoutMs: number
  readonly tokenFile?: string | undefined
}

const needs = ['mdr', 'component', 'remote'] as const
type RankingHost = Host<RankingSettings, (typeof needs)[number]>

export default definePlugin<RankingSettings, (typeof needs)[number]>({
  name: 'ranking',
  version,
  summary: 'Entities in the order of a weighted sum over properties that the client names.',
  needs,
  start(host) {
    const port = backendOf(host)
    const ask = createAsking(host, port)
    return {
      // Without data; the page asks for the token that the rest needs.
      open: ['/', '/spec'],
      description,
      fetch: (request, environment) => route(request, environment, ask),
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

/** Requests to the backend: ranked, and as they are. */
interface Asks {
  ranked(url: URL, headers: Headers, signal: AbortSignal): Promise<Response>
  plain(path: string, headers: Headers, signal: AbortSignal): Promise<Response>
}

function createAsking(host: RankingHost, port: BrokerPort): Asks {
  const { settings, clock, context } = host
  const backend = createBackend(port, clock.monotonic)
  const ranking = createRanking({ backend, clock, context })
  const concurrency = createConcurrencyLimit({
    atOnce: limits.rankingAtOnce.value,
    waitingMax: limits.rankingWaitingMax.value,
    what: 'ranked queries',
  })
  const isElsewhere = settings.backend !== 'mdr' && settings.backend !== 'indexing'
  const hidden = new Set([...unsent, ...(isElsewhere ? credentials : [])])
  const sent = (headers: Headers, without = hidden): Record<string, string> =>
    Object.fromEntries([...headers].filter(([name]) => !without.has(name)))
  const unconditional = new Set([...hidden, ...conditional])

  function checkLoop(): void {
    if (leadsBack(host, port.address))
      throw new GatewayError('peer.loop', 'ranking.backend is the ranking itself')
  }

  async function plain(path: string, headers: Headers, signal: AbortSignal): Promise<Response> {
    checkLoop()
    const { timeoutMs } = settings
    return answerOf(await port.exchange({ method: 'GET', path, headers: sent(headers), signal, timeoutMs }))
  }

  return Object.freeze({
    plain,
    async ranked(url, headers, signal) {
      const split = splitQuery(url.search.slice(1))
      if (split.weights.length === 0) {
        const query = split.others.length === 0 ? '' : `?${split.others.join('&')}`
        return unweighted(await plain(`${entitiesPath}${query}`, headers, signal), [...split.own.keys()])
      }
      checkLoop()
      const question = parseQuestion(split)
      return concurrency.run(signal, async () => {
        const until = clock.monotonic() + settings.timeoutMs
        const found = await ranking.rank(question, { headers: sent(headers, unconditional), signal, until })
        if (found.kind === 'ranked') return rankedAnswer(question, found)
        if (found.kind === 'refused') return passedAnswer(found.answer)
        return failedAnswer(failureStatus[found.kind], found.reason)
      })
    },
  } satisfies Asks)
}

/** Of the connection, or of a body that a GET does not have. */
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
/** They are for this gateway; a backend elsewhere gets those of the settings. */
const credentials = ['authorization', 'x-auth-token', 'cookie']
/** A ranked list is another one than the list that the backend would compare. */
const conditional = ['if-none-match', 'if-match', 'if-modified-since', 'range']

/** Whether an address is that of the ranking itself, by whatever name of this machine. */
function leadsBack({ isOwn, addresses }: RankingHost, address: string): boolean {
  if (!isOwn(address)) return false
  const placeOf = (url: string): string => {
    const { port, pathname } = new URL(url)
    return `${port}${pathname.replace(/\/+$/, '')}`
  }
  return addresses().some((own) => placeOf(own) === placeOf(address))
}

async function route(request: Request, { signal }: RouteEnvironment, asks: Asks): Promise<Response> {
  const url = new URL(request.url)
  const answer = routeOf(url)
  if (answer === undefined) throw new GatewayError('http.no-route', `there is no ${url.pathname}; see /spec`)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    const detail = `${request.method} is not there; the ranking only reads`
    throw new GatewayError('http.method-not-allowed', detail, { allow: 'GET, HEAD' })
  }
  const response = await answer(asks, { url, headers: request.headers, signal })
  if (request.method === 'GET') return response
  return new Response(null, { status: response.status, headers: response.headers })
}

type Answer = (
  asks: Asks,
  asked: { url: URL; headers: Headers; signal: AbortSignal },
) => Response | Promise<Response>

function routeOf({ pathname }: URL): Answer | undefined {
  const path = pathname.replace(/\/+$/, '')
  if (path === '') return () => text(explorer, 'text/html; charset=utf-8')
  if (path === '/api/health') return () => text('{"status":"UP"}', 'application/json')
  if (path === '/spec') return () => text(JSON.stringify(description), 'application/json')
  if (path === entitiesPath) return (asks, { url, headers, signal }) => asks.ranked(url, headers, signal)
  if (/^\/ngsi-ld\/v1\/entities\/[^/]+$/.test(path))
    return (asks, { url, headers, signal }) => asks.plain(`${path}${url.search}`, headers, signal)
  return undefined
}

const text = (body: string, type: string): Response =>
  new Response(body, { headers: { 'Content-Type': type } })
