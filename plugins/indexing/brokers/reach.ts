/**
 * How registered brokers are reached, and how they reach us: their addresses, tenants and credentials, and callbacks that carry a
 * signature of their subscription.
 */
import { createHmac } from 'node:crypto'
import type { BrokerPort, Host, RemoteIdentity } from '#contract'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { placeOf } from '#plugins/indexing/entries/same-broker.ts'
import { type Asking, createAsking } from './broker-requests.ts'
import { isHiddenFrom } from './silence.ts'

/** A broker of the settings. */
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
      return [placeOf(address), { ...one, url: address }]
    }),
  )
  const callbackBase = (): string | undefined => settings.callbackUrl ?? addresses()[0]

  return Object.freeze({
    /** Addresses of the brokers of the settings. */
    declared: (): string[] => [...declared.values()].map(({ url }) => url),
    /** An address as the settings have it; undefined where they do not name that broker. */
    declaredAs: (address: string): string | undefined => declared.get(placeOf(address))?.url,
    /** The tenant that the settings name for an address. */
    tenantOf: (address: string): string | undefined => declared.get(placeOf(address))?.tenant,
    /** Whether anybody can notify us. */
    isReached: (): boolean => callbackBase() !== undefined,
    /** Where a broker notifies us, and whether that is an address of this machine alone while the broker is elsewhere. */
    notifying: (address: string) => () => {
      const base = callbackBase() ?? ''
      return { base, isHidden: isHiddenFrom(address, base) }
    },
    /** Where a broker notifies us for a purpose. */
    callback: (key: string, secret: string) => (purpose: string) => {
      const base = callbackBase()
      return base && `${base}/api/notification/${purpose}/${key}.${signatureOf(secret, purpose)}`
    },
    /** With the credentials of the settings, which may name this machine. @throws config.invalid for files that cannot be read. */
    open(address: string, tenant: string | undefined): BrokerPort & { close(): void } {
      const known = declared.get(placeOf(address))
      const { tenant: usual, ...credentials } = known ?? { url: address }
      const isConfigured = known !== undefined
      return remote({ ...credentials, url: address, tenant: tenant ?? usual, isConfigured })
    },
    asking: (port: BrokerPort, ended: AbortSignal = signal): Asking =>
      createAsking({
        port,
        signal: ended,
        monotonic: clock.monotonic,
        paceMs: 1000 / settings.pagesPerSecond,
      }),
  })
}

/** What a callback carries to show that a subscription of ours sends it. */
export const signatureOf = (secret: string, purpose: string): string =>
  createHmac('sha256', secret).update(purpose).digest('hex').slice(0, 40)

/** Without `/ngsi-ld/v1` and without a slash at its end. @throws ngsi-ld.bad-request-data */
export function addressOf(given: string, field: string): string {
  const url = URL.parse(given)
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw badRequestData('must be http://host[:port] or https://host[:port] of a broker', field)
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw badRequestData('must have no credentials, query or fragment', field)
  return url.href.replace(/\/+$/, '').replace(/\/ngsi-ld(\/v1)?$/, '')
}
