/**
 * Access checks in front of the routes of every listener. A listener beyond loopback serves only clients that
 * send the token of the data folder. Three kinds of paths are open: the liveness probe; the notification path
 * for context sources, whose last segment is a secret of the source; and paths that check a secret of their
 * own (`isOpen` of a plugin or a component). A loopback listener requires no token and keeps out web pages of
 * other origins (cross-origin.ts). There are no users and no rights here; those need an identity.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '#base/register/errors.ts'
import { sourceNotificationsPath } from '#federation/subscription-forwarding.ts'
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
const whereTheTokenIs =
  'send Authorization: Bearer with the content of http-token in the data folder of the gateway (http.tokenFile)'
const bearer = /^bearer\s+(.+)$/i

export interface ListenerRoutes {
  readonly fetch: Fetch
  readonly direct?: DirectReads
  refuse(error: GatewayError): Response
}

export interface EntranceRules {
  /** Undefined if the listener requires no token; then `pages` applies. */
  readonly token: string | undefined
  readonly pages: PageRules
  /** Paths that need no token because they check a secret of their own. */
  readonly isOpen?: (path: string, method: string) => boolean | Promise<boolean>
  /** Paths open to pages of every origin. */
  readonly isShared?: (path: string) => boolean | Promise<boolean>
  /** Paths at which a GET changes something, as some original components specify. */
  readonly changesOnGet?: (path: string) => boolean
}

/** Puts the checks of `rules` in front of a listener's routes. Every listener gets its routes from here. */
export function createEntrance(
  inside: ListenerRoutes,
  rules: EntranceRules,
): Pick<ListenerRoutes, 'fetch' | 'direct'> {
  const { fetch, direct, refuse } = inside
  const { token, pages, isOpen, isShared = () => false, changesOnGet = () => false } = rules
  if (token === undefined) {
    const pageGuard = createPageGuard(pages)
    return {
      fetch: share(keepPagesOut(inside, pageGuard, { isShared, changesOnGet }), isShared),
      ...(direct && { direct: keepPagesOutDirect(direct, pageGuard) }),
    }
  }
  return {
    fetch: share(guard(fetch, token, refuse, isOpen), isShared),
    ...(direct && { direct: guardDirect(direct, token) }),
  }
}

/** Checks the path in the form used for routing, so no other spelling of it can bypass the check. */
function keepPagesOut(
  inside: ListenerRoutes,
  pages: PageGuard,
  { isShared, changesOnGet }: Required<Pick<EntranceRules, 'isShared' | 'changesOnGet'>>,
): Fetch {
  return (request, env) => {
    const { headers } = env.incoming
    const letIn = (isChecked: boolean): Response | Promise<Response> => {
      try {
        if (!isChecked) pages.assertOrigin(headers)
      } catch (error) {
        return inside.refuse(error as GatewayError)
      }
      return inside.fetch(request, env)
    }
    try {
      pages.assertHost(headers)
    } catch (error) {
      return inside.refuse(error as GatewayError)
    }
    if (!mayBePage(headers)) return letIn(true)
    const path = pathOf(request.url)
    const isRead = !doesMoreThanRead(request.method, headers) && !changesOnGet(path)
    const isIn = isRead || isShared(path)
    return typeof isIn === 'boolean' ? letIn(isIn) : isIn.then(letIn)
  }
}

/**
 * Direct reads never write; a request with a foreign Host falls through to the full route, which refuses it.
 */
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
 * Requires the token before `fetch`, from `Authorization: Bearer` or `X-Auth-Token`, compared in constant
 * time. Refusals are sent with `refuse` as http.unauthorized. Component paths that check a secret of their
 * own are open, too.
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
    const credentials = bearer.exec(headers.get('authorization') ?? '')?.[1]
    const given = credentials ?? headers.get('x-auth-token')
    if (given !== null && timingSafeEqual(digest(given.trim()), expected)) {
      const tokenHeader = credentials === undefined ? 'x-auth-token' : 'authorization'
      return fetch(request, { ...env, tokenHeader })
    }
    const letIn = (isIn: boolean): Response | Promise<Response> => {
      if (isIn) return fetch(request, env)
      const why = given === null ? 'a token is required' : 'the token is wrong'
      return refuse(new GatewayError('http.unauthorized', `${why}; ${whereTheTokenIs}`))
    }
    const path = pathOf(url)
    const isIn = isOpen(path) || isOpenElsewhere(path, request.method)
    return typeof isIn === 'boolean' ? letIn(isIn) : isIn.then(letIn)
  }
}

/**
 * Requires the token for direct reads; a request without it falls through to the full route, which refuses
 * it.
 */
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

/** Allows pages of every origin to read the responses of shared paths, including errors. */
function share(fetch: Fetch, isShared: Required<EntranceRules>['isShared']): Fetch {
  return (request, env) => {
    const answer = fetch(request, env)
    // Only web pages send Origin.
    if (env.incoming.headers.origin === undefined) return answer
    return Promise.all([answer, isShared(pathOf(request.url))]).then(([found, isIn]) => {
      if (isIn && !found.headers.has(lets)) found.headers.set(lets, '*')
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
