/**
 * Another broker that the settings name, asked by single requests with the token of its file. It remembers what that
 * broker's clock says, since moments that are sent there are judged there.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { requireSecretFile } from '#config/load/http-token.ts'
import type { Peer, PeerAnswer } from '#federation/peer.ts'

export interface CentreSettings {
  /** Ends in /ngsi-ld/v1. */
  readonly url: string
  readonly tokenFile?: string | undefined
  readonly tenant?: string | undefined
}

export interface CentrePorts {
  readonly peer: Peer
  readonly clock: Clock
  /** What this gateway calls itself in Via. */
  readonly alias: string
}

export interface Centre {
  /** Names are in `context`, where its address is given; a body holds it itself. Never rejects. */
  ask(method: string, path: string, body?: unknown, context?: string): Promise<PeerAnswer>
  /** Headers that say who asks. @throws config.invalid when the file of the token cannot be read. */
  headers(): Record<string, string>
  /** Wall-clock ms over there, as far as it is known. */
  now(): number
}

const json = 'application/json'

/** Differences that the way and whole seconds explain are none. */
const toleranceMs = 5000

export function createCentre({ peer, clock, alias }: CentrePorts, settings: CentreSettings): Centre {
  const { url, tokenFile, tenant } = settings
  let aheadMs = 0

  function headers(): Record<string, string> {
    const token = tokenFile === undefined ? undefined : requireSecretFile(tokenFile)
    return {
      Via: `HTTP/1.1 ${alias}`,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(tenant === undefined ? {} : { 'ngsild-tenant': tenant }),
    }
  }

  return Object.freeze({
    headers,
    async ask(method, path, body, context) {
      let own: Record<string, string>
      try {
        own = headers()
      } catch (error) {
        return { failure: 'unreachable', reason: (error as Error).message }
      }
      const answer = await peer.exchange({
        method,
        url: url + path,
        headers: {
          accept: json,
          ...own,
          ...namesOf(body, context),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        timeoutMs: limits.downwardTimeoutMs.value,
      })
      if ('status' in answer) {
        const theirs = Date.parse(answer.headers.date ?? '') - clock.now()
        if (Number.isFinite(theirs)) aheadMs = Math.abs(theirs) > toleranceMs ? theirs : 0
      }
      return answer
    },
    now: () => clock.now() + aheadMs,
  } satisfies Centre)
}

function namesOf(body: unknown, context: string | undefined): Record<string, string> {
  if (body !== undefined) return { 'content-type': context === undefined ? json : 'application/ld+json' }
  const link = `<${context}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`
  return context === undefined ? {} : { link }
}

/** What an answer says that is no success, in words. */
export function complaintOf(answer: PeerAnswer): string {
  if ('failure' in answer) return answer.reason
  try {
    const { title, detail } = JSON.parse(answer.text) as { title?: unknown; detail?: unknown }
    const words = [title, detail].filter((part) => typeof part === 'string').join(': ')
    return `answered ${answer.status} ${words}`.trimEnd()
  } catch {
    return `answered ${answer.status}`
  }
}
