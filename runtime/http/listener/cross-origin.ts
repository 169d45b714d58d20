/**
 * Keeps foreign web pages out of a listener that requires no token. A browser sends requests on behalf of any
 * page, so binding to loopback is no protection. Without these checks a page could open a WebSocket or send a
 * POST without a body. If it rebinds its DNS name to 127.0.0.1, it could read everything. The browser reports
 * both the host it addresses and the origin of the page; this file checks them. It authenticates nobody:
 * programs other than browsers send any header they like (docs/decisions/0032).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '#base/register/errors.ts'

export interface PageRules {
  /** The address that the listener is bound to. */
  readonly host: string
  /** Further host names of this listener; pages from these hosts have full access. */
  readonly allowedHosts: readonly string[]
  /** The public address of this gateway; its pages have full access. */
  readonly publicUrl?: string | undefined
}

export interface PageGuard {
  /** @throws http.foreign-host if the Host header names neither loopback nor this gateway. */
  assertHost(headers: IncomingHttpHeaders): void
  /** @throws http.foreign-origin if the page has another origin. */
  assertOrigin(headers: IncomingHttpHeaders): void
}

export function createPageGuard({ host: bound, allowedHosts, publicUrl }: PageRules): PageGuard {
  const publicAt = publicUrl === undefined ? undefined : new URL(publicUrl)
  const allowed = new Set(allowedHosts.map(inUrl))
  const hosts = new Set([...allowed, inUrl(bound), ...(publicAt === undefined ? [] : [publicAt.hostname])])

  const isOwnOrigin = (origin: string, host: string | undefined): boolean => {
    // Sandboxed pages have the origin "null", which is not a URL.
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
      // HTTP/1.0 clients may omit Host; browsers always send it.
      if (host === undefined || host === '' || commonHost.test(host)) return
      const name = inUrl(hostForm.exec(host)?.[1] ?? '')
      if (loopbackName.test(name) || hosts.has(name)) return
      throw new GatewayError(
        'http.foreign-host',
        `the Host header names ${host}, which is neither loopback nor listed in http.allowedHosts`,
        { host },
      )
    },
    assertOrigin({ origin, host, 'sec-fetch-site': site }) {
      // If a browser sends no Origin, Sec-Fetch-Site still shows whether the page is ours.
      const isOwn = origin === undefined ? !foreignSites.has(String(site)) : isOwnOrigin(origin, host)
      if (isOwn) return
      throw new GatewayError(
        'http.foreign-origin',
        `a page of ${origin ?? 'another site'} may only read; writes, streams and WebSockets are refused`,
        { origin },
      )
    },
  } satisfies PageGuard)
}

/** Whether a web page may have sent the request; programs send neither of these headers. */
export const mayBePage = ({ origin, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean =>
  origin !== undefined || site !== undefined

const safeMethods: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Media types are case-insensitive (RFC 9110, 8.3.1). */
const eventStream = /\btext\/event-stream\b/i

/**
 * Whether an Accept header names Server-Sent Events. Routes open a stream only if this holds, so the page
 * guard covers every stream.
 */
export const acceptsEventStream = (accept: string | undefined): boolean => eventStream.test(accept ?? '')

/** Whether a request does more than read: it changes data, or takes over a stream from another consumer. */
export function doesMoreThanRead(
  method: string | undefined,
  { upgrade, accept }: IncomingHttpHeaders,
): boolean {
  return !safeMethods.has(method) || upgrade !== undefined || acceptsEventStream(accept)
}

const foreignSites: ReadonlySet<string> = new Set(['cross-site', 'same-site'])

/** Fast path for the Host headers that nearly all clients send. */
const commonHost = /^(?:localhost|127\.0\.0\.1)(?::\d{1,5})?$/
const hostForm = /^(\[[^\]]*\]|[^:]*)(?::\d*)?$/
const loopbackName = /^(?:localhost|127(?:\.\d{1,3}){1,3}|\[::1\]|\[(?:0+:){7}0*1\])$/

/** A host name in the form that URLs use. */
function inUrl(host: string): string {
  const isBare = host.includes(':') && !host.startsWith('[')
  return (isBare ? `[${host}]` : host).toLowerCase().replace(/\.$/, '')
}
