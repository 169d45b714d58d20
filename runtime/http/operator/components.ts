/**
 * Routes of components beside the broker. Each component has its paths under its name on the main listener.
 * On a listener of its own these paths start at the root. Errors of a component become problem bodies, as
 * everywhere.
 */
import { limits } from '#base/limits/limits.ts'
import type { DirectRequest, Reply, RouteEnvironment } from '#contract'
import type { Bodies } from '#http/request/body.ts'
import type { HttpEnv } from '#http/request/http-environment.ts'
import type { DirectReads } from '#http/request/response.ts'

/** Components by name, as the plugin host runs them. */
export interface Components {
  has(name: string): boolean
  /**
   * The component to which all paths with this first segment belong, as those of an original component; it
   * receives the whole path.
   */
  ofPrefix(segment: string): string | undefined
  status(): object
  /** Whether a component reads or forwards the bodies of requests itself, as streams. */
  readsStreams(name: string): boolean
  /** A response of a component that needs no Request; undefined if `fetch` has to respond. */
  direct(name: string, request: DirectRequest): Reply | undefined
  fetch(name: string, request: Request, environment: RouteEnvironment): Response | Promise<Response>
}

export interface ComponentRoutes {
  /** Answers a path under a component's name; undefined if the path belongs to no component. */
  under(request: Request, env: HttpEnv): Promise<Response> | undefined
  /** Answers a path under a component's name at once, if the component can. */
  readonly directUnder: DirectReads
  /** Answers a path of one component. */
  of(name: string, request: Request, env: HttpEnv): Promise<Response>
}

export function createComponentRoutes(
  components: Components,
  bodies: Pick<Bodies, 'ofComponent'>,
): ComponentRoutes {
  const of = async (name: string, request: Request, env: HttpEnv): Promise<Response> =>
    components.fetch(name, request, environmentOf(env, bodies, components.readsStreams(name)))
  return Object.freeze({
    of,
    directUnder({ method, url = '', headers, socket }) {
      const [, name, rest] = /^\/([a-z-]+)(\/.*)/.exec(url) ?? []
      // Pages of other origins need further headers.
      if (name === undefined || headers.origin !== undefined) return undefined
      const reply = components.direct(name, { method, url: rest, headers, socket })
      if (reply === undefined) return undefined
      const { location, link } = reply.headers
      return { ...reply, headers: { ...reply.headers, ...relocated({ location, link }, name) } }
    },
    under(request, env) {
      const { url } = request
      const start = url.indexOf('/', url.indexOf('://') + 3)
      const [, name, rest] = /^\/([a-z-]+)(\/[^?]*)?/.exec(url.slice(start)) ?? []
      if (name === undefined) return undefined
      const { method, headers } = request
      const owner = components.ofPrefix(name)
      if (owner !== undefined) return of(owner, new Request(url, { method, headers }), env)
      if (!components.has(name)) return undefined
      // Pages of components use relative links, so the folder's address must end with a slash.
      if (rest === undefined)
        return Promise.resolve(Response.redirect(`${url.slice(0, start)}/${name}/`, 308))
      const path = url.slice(start + name.length + 1)
      // Body and signal are in the environment; attaching them to the Request would cost as much as many a
      // response.
      return of(name, new Request(url.slice(0, start) + path, { method, headers }), env).then((response) =>
        withRelocated(response, name),
      )
    },
  } satisfies ComponentRoutes)
}

function withRelocated(response: Response, name: string): Response {
  const [location, link] = [response.headers.get('location'), response.headers.get('link')]
  const changed = Object.entries(relocated({ location, link }, name))
  if (changed.length === 0) return response
  const headers = new Headers(response.headers)
  for (const [key, value] of changed) headers.set(key, value)
  return new Response(response.body, { status: response.status, headers })
}

/** Location and Link with the component's name before their absolute paths, where they have any. */
function relocated(
  { location, link }: Readonly<Record<'location' | 'link', string | null | undefined>>,
  name: string,
): Readonly<Record<string, string>> {
  return {
    ...(location && /^\/(?!\/)/.test(location) && { location: `/${name}${location}` }),
    ...(link && /<\/(?!\/)/.test(link) && { link: link.replaceAll(/<\/(?!\/)/g, `</${name}/`) }),
  }
}

const nothing = Buffer.alloc(0)

const hasBody = ({ incoming: { headers }, body }: HttpEnv): boolean =>
  body !== undefined ||
  headers['transfer-encoding'] !== undefined ||
  Number(headers['content-length'] ?? 0) > 0

function environmentOf(
  env: HttpEnv,
  bodies: Pick<Bodies, 'ofComponent'>,
  isStreamed: boolean,
): RouteEnvironment {
  const { outgoing, upgrade } = env
  const abort = new AbortController()
  // A response that was sent completely needs no abort.
  outgoing?.once('close', () => {
    if (!outgoing.writableFinished) abort.abort()
  })
  // Read as it arrives: body data without a listener is discarded, and a later reader would wait forever.
  const read = (): Promise<Buffer> => (hasBody(env) ? bodies.ofComponent({ env }) : Promise.resolve(nothing))
  let body = isStreamed ? undefined : read()
  body?.catch(() => undefined)
  return {
    body: () => (body ??= read()),
    arrival: env,
    upgrade:
      upgrade && ((use) => upgrade.accept(use, { messageBytesMax: limits.componentMessageBytesMax.value })),
    signal: abort.signal,
  }
}
