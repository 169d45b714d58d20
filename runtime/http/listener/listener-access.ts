/**
 * What stands before the routes of every listener. A listener that is not loopback answers only clients that send the token of
 * the data folder; open are the liveness probe, and the path of notifications of context sources, the end of which only the
 * source knows. A loopback listener asks for no token, and keeps out web pages of other origins (cross-origin.ts). There are no
 * callers and no rights here; those come with an identity.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '#base/register/errors.ts'
import { sourceNotificationsPath } from '#federation/passing-on.ts'
import type { HttpEnv } from '#http/request/http-environment.ts'
import type { DirectReads } from '#http/request/response.ts'
import {
  createPageGuard,
  doesMoreThanRead,
  mayBePage,
  type PageGuard,
  type PageRules,
} from './cross-origin.ts'

type Fetch = (request: Request, env: HttpEnv) => Response | Promise<Response>

const openPath = '/health/live'
const bearer = /^bearer\s+(.+)$/i

export interface Inside {
  readonly fetch: Fetch
  readonly direct?: DirectReads
  refuse(error: GatewayError): Response
}

export interface EntranceRules {
  /** Undefined where the listener asks for none; then `pages` holds. */
  readonly token: string | undefined
  readonly pages: PageRules
  /** Paths that need no token, because they check a secret of their own. */
  readonly isOpen?: (path: string, method: string) => boolean | Promise<boolean>
  /** Paths that pages of all origins may use. */
  readonly isShared?: (path: string) => boolean
}

/** Puts what `rules` demand before the routes of a listener. Every listener has its routes from here. */
export function createEntrance(inside: Inside, rules: EntranceRules): Pick<Inside, 'fetch' | 'direct'> {
  const { fetch, direct, refuse } = inside
  const { token, pages, isOpen, isShared = () => false } = rules
  if (token === undefined) {
    const pageGuard = createPageGuard(pages)
    return {
      fetch: share(keepPagesOut(inside, pageGuard, isShared), isShared),
      ...(direct && { direct: keepPagesOutDirect(direct, pageGuard) }),
    }
  }
  return {
    fetch: share(guard(fetch, token, refuse, isOpen), isShared),
    ...(direct && { direct: guardDirect(direct, token) }),
  }
}

/** The path is judged as it will be routed, so that no spelling of it leads further. */
function keepPagesOut(inside: Inside, pages: PageGuard, isShared: (path: string) => boolean): Fetch {
  return (request, env) => {
    const { headers } = env.incoming
    try {
      pages.assertHost(headers)
      if (mayBePage(headers) && doesMoreThanRead(request.method, headers) && !isShared(pathOf(request.url)))
        pages.assertOrigin(headers)
    } catch (error) {
      return inside.refuse(error as GatewayError)
    }
    return inside.fetch(request, env)
  }
}

/** The short way only reads; a request with a foreign Host goes the long way, where it is refused. */
function keepPagesOutDirect(direct: DirectReads, pages: PageGuard): DirectReads {
  return (incoming) => {
    try {
      pages.assertHost(incoming.headers)
    } catch {
      return undefined
    }
    return direct(incoming)
  }
}

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
function guardDirect(direct: DirectReads, token: string): DirectReads {
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
function share(fetch: Fetch, isShared: (path: string) => boolean): Fetch {
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
