/**
 * How this gateway reaches registered brokers, and how they reach it: addresses, tenants, credentials, and
 * callback URLs signed per subscription.
 */

import { type BrokerClient, createBrokerClient } from '#client/requests/broker-requests.ts'
import { canonicalAddress } from '#client/requests/same-broker.ts'
import { signatureOf } from '#client/subscriptions/callback-signature.ts'
import type { BrokerPort, Host, RemoteIdentity } from '#contract'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** A broker in the settings. */
export interface DeclaredBroker {
  readonly url: string
  readonly tenant?: string | undefined
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
  readonly identity?: RemoteIdentity | undefined
}

export interface ReachSettings {
  readonly callbackUrl?: string | undefined
  readonly brokers: readonly DeclaredBroker[]
  readonly pagesPerSecond: number
}

export type Reach = ReturnType<typeof createReach>

export function createReach({ settings, remote, addresses, signal, clock }: Host<ReachSettings, 'remote'>) {
  const declared = new Map(
    settings.brokers.map((one) => {
      const address = addressOf(one.url, 'indexing.brokers')
      return [canonicalAddress(address), { ...one, url: address }]
    }),
  )
  const callbackBase = (): string | undefined => settings.callbackUrl ?? addresses()[0]

  return Object.freeze({
    /** Addresses of the brokers in the settings. */
    declared: (): string[] => [...declared.values()].map(({ url }) => url),
    /** The address of a broker as written in the settings; undefined if they do not name it. */
    declaredAs: (address: string): string | undefined => declared.get(canonicalAddress(address))?.url,
    /** The tenant that the settings name for an address. */
    tenantOf: (address: string): string | undefined => declared.get(canonicalAddress(address))?.tenant,
    /** Base address for notifications; undefined while this gateway has none that brokers can reach. */
    callbackBase,
    /** Callback URL for a purpose. */
    callback: (key: string, secret: string) => (base: string, purpose: string) =>
      `${base}/api/notification/${purpose}/${key}.${signatureOf(secret, purpose)}`,
    /**
     * Opens a port with the credentials of the settings. Brokers in the settings may be on this machine.
     * @throws config.invalid for files that cannot be read.
     */
    open(address: string, tenant: string | undefined): BrokerPort & { close(): void } {
      const known = declared.get(canonicalAddress(address))
      const { tenant: usual, ...credentials } = known ?? { url: address }
      const isConfigured = known !== undefined
      return remote({ ...credentials, url: address, tenant: tenant ?? usual, isConfigured })
    },
    client: (port: BrokerPort, ended: AbortSignal = signal): BrokerClient =>
      createBrokerClient({
        port,
        signal: ended,
        monotonic: clock.monotonic,
        paceMs: 1000 / settings.pagesPerSecond,
      }),
  })
}

/** Normalizes an address: removes `/ngsi-ld/v1` and trailing slashes. @throws ngsi-ld.bad-request-data */
export function addressOf(given: string, field: string): string {
  const url = URL.parse(given)
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw badRequestData('must be a broker address: http://host[:port] or https://host[:port]', field)
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw badRequestData('must not have credentials, query or fragment', field)
  return url.href.replace(/\/+$/, '').replace(/\/ngsi-ld(\/v1)?$/, '')
}
