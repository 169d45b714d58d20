/**
 * The client of a central broker named in the settings: single requests, authorized by a token file. It
 * tracks how far that broker's clock differs, because expiry times are judged there.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { requireSecretFile } from '#config/load/secret-files.ts'
import type { Peer, PeerAnswer } from '#federation/peer.ts'
import { viaHeader } from '#ngsi-ld/federation/via.ts'
import { problemTextIn } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export interface CentreSettings {
  /** Ends in /ngsi-ld/v1. */
  readonly url: string
  readonly tokenFile?: string | undefined
  readonly tenant?: string | undefined
}

export interface CentrePorts {
  readonly peer: Peer
  readonly clock: Clock
  /** The name of this gateway in Via. */
  readonly alias: string
}

const json = 'application/json'

/** Smaller differences result from latency and whole seconds. */
const toleranceMs = 5000

export type Centre = ReturnType<typeof createCentre>

export function createCentre({ peer, clock, alias }: CentrePorts, settings: CentreSettings) {
  const { url, tokenFile, tenant } = settings
  let leadMs = 0

  function headers(): Record<string, string> {
    const token = tokenFile === undefined ? undefined : requireSecretFile(tokenFile)
    return {
      Via: viaHeader(undefined, alias),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(tenant === undefined ? {} : { 'ngsild-tenant': tenant }),
    }
  }

  return Object.freeze({
    /**
     * Headers that identify this gateway.
     * @throws config.invalid when the token file cannot be read.
     */
    headers,
    /** Names are short names of `context`, if its URL is given; a body contains it itself. Never rejects. */
    async request(method: string, path: string, body?: unknown, context?: string): Promise<PeerAnswer> {
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
          ...contextHeaders(body, context),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        timeoutMs: limits.downwardTimeoutMs.value,
      })
      if ('status' in answer) {
        const differenceMs = Date.parse(answer.headers.date ?? '') - clock.now()
        if (Number.isFinite(differenceMs)) leadMs = Math.abs(differenceMs) > toleranceMs ? differenceMs : 0
      }
      return answer
    },
    /** The centre's wall clock (ms), as far as it is known. */
    now: () => clock.now() + leadMs,
  })
}

function contextHeaders(body: unknown, context: string | undefined): Record<string, string> {
  if (body !== undefined) return { 'content-type': context === undefined ? json : 'application/ld+json' }
  const link = `<${context}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`
  return context === undefined ? {} : { link }
}

/** Describes an unsuccessful response. */
export const failureReason = (answer: PeerAnswer): string =>
  'failure' in answer
    ? answer.reason
    : `answered ${answer.status} ${problemTextIn(answer.text, '')}`.trimEnd()
