/**
 * Tokens of an identity manager (POST /v1/auth/tokens with name and password, answered with X-Subject-Token).
 * A token is cached until shortly before it expires. The password is read for each token request and never
 * kept.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import { requireSecretFile } from '#config/load/secret-files.ts'
import type { RemoteIdentity } from '#contract'
import type { Peer } from '#federation/peer.ts'
import { parsedJson } from '#ngsi-ld/values/json.ts'

export function createIdentityTokens(
  { url, name, passwordFile }: RemoteIdentity,
  { peer, clock }: { readonly peer: Peer; readonly clock: Clock },
) {
  let kept: { readonly token: string; readonly until: number } | undefined
  let pending: Promise<string> | undefined

  async function requestToken(): Promise<string> {
    const answer = await peer.exchange({
      method: 'POST',
      url: `${url.replace(/\/+$/, '')}/v1/auth/tokens`,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name, password: requireSecretFile(passwordFile) }),
      timeoutMs: limits.pluginRequestMs.value,
    })
    if ('failure' in answer)
      throw new GatewayError('peer.unavailable', `the identity manager ${url}: ${answer.reason}`)
    const token = answer.headers['x-subject-token']
    if (answer.status !== 201 || typeof token !== 'string')
      throw new GatewayError(
        'peer.refused',
        `the identity manager ${url} returned no token: status ${answer.status}`,
      )
    kept = { token, until: expiryOf(answer.text) - limits.identitySlackMs.value }
    return token
  }

  return Object.freeze({
    /** The header with the token. @throws GatewayError peer.unavailable or peer.refused if there is none. */
    async header(): Promise<Readonly<Record<string, string>>> {
      if (kept !== undefined && clock.now() < kept.until) return { 'X-Auth-Token': kept.token }
      pending ??= requestToken().finally(() => {
        pending = undefined
      })
      return { 'X-Auth-Token': await pending }
    },
    /** Drops a refused token; the next call requests a new one. */
    forget(): void {
      kept = undefined
    },
  })
}

/** Expiry of a token, ms; infinite if not stated, since a refusal also renews it. */
function expiryOf(text: string): number {
  const body = parsedJson(text) as { readonly token?: { readonly expires_at?: unknown } } | null | undefined
  const at = Date.parse(String(body?.token?.expires_at))
  return Number.isNaN(at) ? Number.POSITIVE_INFINITY : at
}
