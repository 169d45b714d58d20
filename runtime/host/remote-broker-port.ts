/**
 * Another broker over HTTP, for plugins: with its tenant, credentials and trusted CA. Answers are bounded in
 * time and size. It never rejects.
 */

import { getCACertificates } from 'node:tls'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import { readAuthorities, requireSecretFile } from '#config/load/secret-files.ts'
import type { BrokerAnswer, BrokerPort, BrokerRequest, RemoteBroker } from '#contract'
import type { HttpEndpointSettings } from '#delivery/http-endpoint.ts'
import { createPeer } from '#federation/peer.ts'
import { createIdentityTokens } from './identity-tokens.ts'
import { within } from './patience.ts'

/** @throws GatewayError config.invalid for an invalid address or an unreadable file. */
export function openRemoteBroker(
  { url, tenant, headers, tokenFile, caFile, identity, isConfigured = false }: RemoteBroker,
  settings: HttpEndpointSettings,
  clock: Clock,
): BrokerPort & { close(): void } {
  const address = addressOf(url)
  const ca = caFile === undefined ? undefined : readAuthorities(caFile)
  const peer = createPeer({
    // The settings may name this machine; clients over HTTP may not.
    allowsLoopback: settings.allowsLoopback || isConfigured,
    ca: ca === undefined ? settings.ca : [...(settings.ca ?? getCACertificates()), ca],
  })
  const tokens = identity === undefined ? undefined : createIdentityTokens(identity, { peer, clock })

  async function exchange(request: BrokerRequest): Promise<BrokerAnswer> {
    let known: Readonly<Record<string, string>>
    try {
      known = { ...bearer(tokenFile), ...(await tokens?.header()), ...(await headers?.()) }
    } catch (error) {
      return { failure: 'unreachable', reason: (error as Error).message }
    }
    const answer = await peer.exchange({
      method: request.method,
      url: address + request.path,
      headers: {
        ...(tenant === undefined ? {} : { 'NGSILD-Tenant': tenant }),
        ...known,
        ...request.headers,
      },
      body: request.body,
      timeoutMs: request.timeoutMs ?? limits.pluginRequestMs.value,
    })
    if ('failure' in answer)
      return { failure: answer.isTooLarge === true ? 'oversized' : answer.failure, reason: answer.reason }
    return { status: answer.status, headers: flat(answer.headers), text: answer.text }
  }

  return Object.freeze({
    address,
    exchange: (request) =>
      within(request, async () => {
        const answer = await exchange(request)
        if (tokens === undefined || 'failure' in answer || answer.status !== 401) return answer
        // The token may have been revoked before it expired.
        tokens.forget()
        return exchange(request)
      }),
    close: peer.close,
  } satisfies BrokerPort & { close(): void })
}

/** Removes `/ngsi-ld/v1`, which is part of each request's path. */
function addressOf(url: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new GatewayError('config.invalid', `${url} is not an http or https address`)
  return new URL(url).href.replace(/\/+$/, '').replace(/\/ngsi-ld(\/v1)?$/, '')
}

const bearer = (file: string | undefined): Record<string, string> =>
  file === undefined ? {} : { Authorization: `Bearer ${requireSecretFile(file)}` }

const flat = (headers: NodeJS.Dict<string | string[]>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
    ),
  )
