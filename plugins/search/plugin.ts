/**
 * The search enabler: GraphQL over the entities of a broker, with an IDE. This file only connects routes to
 * the engine, which is loaded at the first request that needs it.
 */
import { join } from 'node:path'
import { type BuiltPage, createBuiltPage } from '#base/pages/built-page.ts'
import { GatewayError } from '#base/register/errors.ts'
import { version } from '#base/register/version.ts'
import { type BrokerPort, definePlugin, type Host, type RouteEnvironment } from '#contract'
import { readSchemaFolder } from '#plugins/search/schema/schema-folder.ts'
import type { SchemaMistake } from '#plugins/search/schema/schema-merge.ts'
import type { Engine } from '#plugins/search/transports/engine.ts'
import { description } from '#plugins/search/transports/openapi-search.ts'

/** The section `search` of the settings. */
export interface SearchSettings {
  readonly backend: string
  readonly tokenFile?: string | undefined
  readonly timeoutMs: number
  readonly schemaFolder?: string | undefined
  readonly introspection: boolean
  readonly cors: boolean
  readonly version?: string | undefined
}

const needs = ['mdr', 'component', 'remote', 'changes'] as const
type SearchHost = Host<SearchSettings, (typeof needs)[number]>

export default definePlugin<SearchSettings, (typeof needs)[number]>({
  name: 'search',
  version,
  summary: 'GraphQL over streams, sensors, platforms, observations, quality and events, with an IDE.',
  needs,
  async start(host) {
    const { settings } = host
    const backend = backendOf(host)
    const folder = settings.schemaFolder === undefined ? undefined : readSchemaFolder(settings.schemaFolder)
    let mistakes: readonly SchemaMistake[] = folder?.mistakes ?? []
    let loading: Promise<Engine> | undefined
    let loaded: Engine | undefined

    async function load(): Promise<Engine> {
      const { createEngine } = await import('#plugins/search/transports/engine.ts')
      loaded = await createEngine(backend, settings, folder?.texts ?? [])
      mistakes = [...(folder?.mistakes ?? []), ...loaded.mistakes]
      for (const { place, message } of mistakes) host.log.warn('search.schema-mistake', { place, message })
      return loaded
    }
    const engine = (): Promise<Engine> => (loading ??= load())
    // Report schema mistakes at startup, not at the first query.
    if ((folder?.texts.length ?? 0) > 0) await engine()

    const page = createBuiltPage({
      name: 'search',
      builder: join(import.meta.dirname, 'ide', 'build-ide.ts'),
      policy,
    })
    return {
      // These have no data; the page prompts for the token that other routes require.
      open: ['/', '/ide', '/version'],
      description,
      isShared: settings.cors,
      async fetch(request, environment) {
        const answer = await route(request, environment, {
          engine,
          page,
          settings,
        })
        if (settings.cors) answer.headers.set('Access-Control-Allow-Origin', '*')
        return answer
      },
      status: () => ({ backend: backend.broker.address, ...loaded?.status() }),
      complaints: () => mistakes.map(({ place, message }) => `schema ${place}: ${message}`),
      close() {
        loaded?.close()
        backend.close?.()
      },
    }
  },
})

interface Backend {
  readonly broker: BrokerPort
  readonly ranking: BrokerPort
  readonly index?: BrokerPort
  readonly changes: SearchHost['changes'] | undefined
  readonly close?: () => void
}

/** A remote broker must rank by itself; for this gateway's backends the ranking plugin does. */
function backendOf({ settings, mdr, component, remote, changes }: SearchHost): Backend {
  const { backend, tokenFile } = settings
  const ranking = component('ranking')
  const index = component('indexing')
  if (backend === 'mdr') return { broker: mdr, ranking, index, changes }
  if (backend === 'indexing') return { broker: index, ranking, index, changes }
  // The ranking has its own backend and finds nearby entities there.
  if (backend === 'ranking') return { broker: component(backend), ranking, changes }
  const other = remote({ url: backend, tokenFile, isConfigured: true })
  return { broker: other, ranking: other, changes: undefined, close: other.close }
}

interface Parts {
  readonly engine: () => Promise<Engine>
  readonly page: BuiltPage
  readonly settings: SearchSettings
}

async function route(
  request: Request,
  environment: RouteEnvironment,
  { engine, page, settings }: Parts,
): Promise<Response> {
  const { method, url } = request
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const path = url.slice(start).split('?', 1)[0]!
  if (method === 'OPTIONS') return preflight(settings)
  if (path === '/graphql' && environment.upgrade !== undefined) {
    return (await engine()).socket(environment)
  }
  if (path === '/graphql' || path === '/graphql/stream') {
    const { http, stream } = await engine()
    if (path !== '/graphql') return stream(request, environment)
    if (method !== 'HEAD') return http(request, environment)
    const { status, headers } = await http(new Request(url, { headers: request.headers }), environment)
    return new Response(null, { status, headers })
  }
  const isRead = method === 'GET' || method === 'HEAD'
  const found = path === '/version' ? versionOf(settings) : isRead ? pageFile(page, path, request) : undefined
  if (found === undefined) throw new GatewayError('http.no-route', `search has no route ${method} ${path}`)
  if (!isRead) throw new GatewayError('http.method-not-allowed', `${method} ${path}`, { allow: 'GET' })
  return found
}

const versionOf = (settings: SearchSettings): Response => Response.json(settings.version ?? version)

/** Answers a CORS preflight request. */
function preflight({ cors }: SearchSettings): Response {
  const headers = {
    Allow: 'GET, HEAD, POST, OPTIONS',
    ...(cors && {
      'Access-Control-Allow-Methods': 'GET, POST',
      'Access-Control-Allow-Headers': 'Content-Type, Accept, Authorization, X-Auth-Token',
      'Access-Control-Max-Age': '600',
    }),
  }
  return new Response(null, { status: 204, headers })
}

/** A file of the page by its path, `/` for the page; undefined for other paths. */
function pageFile(page: BuiltPage, path: string, request: Request): Response | Promise<Response> | undefined {
  if (path === '/' || path === '') return page.html(request)
  return path.startsWith('/ide/') ? page.file(path.slice('/ide/'.length), request) : undefined
}

/** The script may only connect to its own origin; the editor creates styles at run time. */
const policy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; worker-src 'self' blob:; frame-ancestors 'none'"
