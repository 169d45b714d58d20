/**
 * Keeps web pages out of a listener that asks for no token. A browser sends what any page asks it to send, so that being on
 * loopback protects nothing: a page whose DNS name was rebound to 127.0.0.1 reads everything, and any page can open a WebSocket
 * or send a POST without a body. The browser names both: the host it believes to talk to, and the origin of the page.
 * It does not authenticate anybody: programs send what they like (docs/decisions/0032).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '#base/register/errors.ts'

export interface PageRules {
  /** What the listener is bound to. */
  readonly host: string
  /** Further host names under which clients reach this listener; pages from there may do everything. */
  readonly allowedHosts: readonly string[]
  /** The address of this gateway for others, whose pages may do everything, too. */
  readonly publicUrl?: string | undefined
}

export interface PageGuard {
  /** @throws http.foreign-host for a Host header that names neither loopback nor this gateway. */
  assertHost(headers: IncomingHttpHeaders): void
  /** @throws http.foreign-origin for a page of another origin. */
  assertOrigin(headers: IncomingHttpHeaders): void
}

export function createPageGuard({ host: bound, allowedHosts, publicUrl }: PageRules): PageGuard {
  const publicAt = publicUrl === undefined ? undefined : new URL(publicUrl)
  const allowed = new Set(allowedHosts.map(inUrl))
  const hosts = new Set([...allowed, inUrl(bound), ...(publicAt === undefined ? [] : [publicAt.hostname])])

  const isOwnOrigin = (origin: string, host: string | undefined): boolean => {
    // Sandboxed pages have the origin "null", which is no URL.
    const page = URL.parse(origin)
    if (page === null || page.host === '') return false
    return (
      page.host === publicAt?.host ||
      allowed.has(inUrl(page.hostname)) ||
      page.host === URL.parse(`${page.protocol}//${host ?? ''}`)?.host
    )
  }

  return Object.freeze({
    assertHost({ host }) {
      // HTTP/1.0 may leave it out; a browser never does.
      if (host === undefined || host === '' || commonHost.test(host)) return
      const name = inUrl(hostForm.exec(host)?.[1] ?? '')
      if (loopbackName.test(name) || hosts.has(name)) return
      throw new GatewayError(
        'http.foreign-host',
        `the Host header names ${host}, which is neither this machine nor in http.allowedHosts`,
        { host },
      )
    },
    assertOrigin({ origin, host, 'sec-fetch-site': site }) {
      // Where a browser names no origin it still says whether the page is one of ours.
      const isOwn = origin === undefined ? !foreignSites.has(String(site)) : isOwnOrigin(origin, host)
      if (isOwn) return
      throw new GatewayError(
        'http.foreign-origin',
        `a page of ${origin ?? 'another site'} may only read, without streams and WebSockets`,
        { origin },
      )
    },
  } satisfies PageGuard)
}

/** Whether a page may have made a request. Programs send neither of these headers. */
export const mayBePage = ({ origin, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean =>
  origin !== undefined || site !== undefined

const safeMethods: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Media types are compared without case (RFC 9110, 8.3.1). */
const eventStream = /\btext\/event-stream\b/i

/** Whether an Accept header names Server-Sent Events. A route opens a stream only where this holds, so the page guard covers it. */
export const acceptsEventStream = (accept: string | undefined): boolean => eventStream.test(accept ?? '')

/** Whether a request does more than read: it changes something, or takes a stream that another consumer may have. */
export function doesMoreThanRead(
  method: string | undefined,
  { upgrade, accept }: IncomingHttpHeaders,
): boolean {
  return !safeMethods.has(method) || upgrade !== undefined || acceptsEventStream(accept)
}

const foreignSites: ReadonlySet<string> = new Set(['cross-site', 'same-site'])

/** What nearly every client sends. */
const commonHost = /^(?:localhost|127\.0\.0\.1)(?::\d{1,5})?$/
const hostForm = /^(\[[^\]]*\]|[^:]*)(?::\d*)?$/
const loopbackName = /^(?:localhost|127(?:\.\d{1,3}){1,3}|\[::1\]|\[(?:0+:){7}0*1\])$/

/** A host as URLs name it. */
function inUrl(host: string): string {
  const isBare = host.includes(':') && !host.startsWith('[')
  return (isBare ? `[${host}]` : host).toLowerCase().replace(/\.$/, '')
}
