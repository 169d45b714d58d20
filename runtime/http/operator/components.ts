/**
 * Routes of components beside the broker. Each component has its paths under its name on the main listener.
 * On a listener of its own these paths start at the root. Errors of a component become problem bodies, as
 * everywhere.
 */
import { limits } from '#base/limits/limits.ts'
import type { RouteEnvironment } from '#contract'
import type { Bodies } from '#http/request/body.ts'
import type { HttpEnv } from '#http/request/http-environment.ts'

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
  fetch(name: string, request: Request, environment: RouteEnvironment): Response | Promise<Response>
}

export interface ComponentRoutes {
  /** Answers a path under a component's name; undefined if the path belongs to no component. */
  under(request: Request, env: HttpEnv): Promise<Response> | undefined
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
        relocated(response, name),
      )
    },
  } satisfies ComponentRoutes)
}

/** Prefixes the absolute paths in Location and Link with the component's name. */
function relocated(response: Response, name: string): Response {
  const [location, link] = [response.headers.get('Location') ?? '', response.headers.get('Link') ?? '']
  const isMoved = /^\/(?!\/)/.test(location)
  const isLinked = /<\/(?!\/)/.test(link)
  if (!isMoved && !isLinked) return response
  const headers = new Headers(response.headers)
  if (isMoved) headers.set('Location', `/${name}${location}`)
  if (isLinked) headers.set('Link', link.replaceAll(/<\/(?!\/)/g, `</${name}/`))
  return new Response(response.body, { status: response.status, headers })
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
