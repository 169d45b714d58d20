/**
 * The floor of authentication: a listener that is not loopback answers only who knows the token of the data folder.
 * Open are the liveness probe and the path of
 * notifications of context sources, the end of which only the source knows. It knows no callers and no rights; those come with an identity.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '#base/errors.ts'
import { sourceNotificationsPath } from '#federation/passing-on.ts'
import type { DirectReads } from './direct-reads.ts'
import type { HttpEnv } from './server.ts'

type Fetch = (request: Request, env: HttpEnv) => Response | Promise<Response>

const openPath = '/health/live'
const bearer = /^bearer\s+(.+)$/i

/**
 * Puts a guard before `fetch`. The token is taken from `Authorization: Bearer` or `X-Auth-Token` and compared in
 * constant time. Refusals leave by `refuse`, as http.unauthorized. Paths of components that check a secret of their own are
 * open, too.
 */
export function guard(
  fetch: Fetch,
  token: string,
  refuse: (error: GatewayError) => Response,
  isOpenElsewhere: (path: string, method: string) => boolean | Promise<boolean> = () => false,
): Fetch {
  const expected = digest(token)
  return (request, env) => {
    const { headers, url } = request
    const given = bearer.exec(headers.get('authorization') ?? '')?.[1] ?? headers.get('x-auth-token')
    if (given !== null && timingSafeEqual(digest(given.trim()), expected)) return fetch(request, env)
    const letIn = (isIn: boolean): Response | Promise<Response> => {
      if (isIn) return fetch(request, env)
      const why = given === null ? 'a token is needed' : 'the token is not the right one'
      return refuse(new GatewayError('http.unauthorized', why))
    }
    const path = pathOf(url)
    const isIn = isOpen(path) || isOpenElsewhere(path, request.method)
    return typeof isIn === 'boolean' ? letIn(isIn) : isIn.then(letIn)
  }
}

/** The same for the short way: who does not know the token goes the long one, where it is refused. */
export function guardDirect(direct: DirectReads, token: string): DirectReads {
  const expected = digest(token)
  return (incoming) => {
    const { authorization, 'x-auth-token': other } = incoming.headers
    const given = bearer.exec(authorization ?? '')?.[1] ?? other
    if (typeof given !== 'string' || !timingSafeEqual(digest(given.trim()), expected)) return undefined
    return direct(incoming)
  }
}

const lets = 'Access-Control-Allow-Origin'

/** Lets pages of any origin read whatever `fetch` answers at paths that are shared, refusals among it. */
export function share(fetch: Fetch, isShared: (path: string) => boolean): Fetch {
  return (request, env) => {
    const answer = fetch(request, env)
    // Only pages name their origin.
    if (env.incoming.headers.origin === undefined) return answer
    return Promise.resolve(answer).then((found) => {
      // Asked now, since a plugin that had still to start has by now.
      if (isShared(pathOf(request.url)) && !found.headers.has(lets)) found.headers.set(lets, '*')
      return found
    })
  }
}

function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  return url.slice(start).split('?', 1)[0]!
}

function isOpen(path: string): boolean {
  return path === openPath || path === `${openPath}/` || path.startsWith(`${sourceNotificationsPath}/`)
}
