/**
 * The broker that the settings of a component choose: this gateway's own, or a remote one. Opens the remote
 * one, and ends the subscriptions at the broker of earlier settings.
 */
import { limits } from '#base/limits/limits.ts'
import type { Host, HostBase } from '#contract'
import { createBrokerClient } from './broker-requests.ts'

export interface BrokerSettings {
  /** mdr, or the address of the broker. */
  readonly broker: string
  readonly tenant?: string | undefined
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
  readonly pagesPerSecond: number
  readonly callbackUrl?: string | undefined
}

/** Stands for the gateway's own broker in settings and tables. */
export const mdr = 'mdr'

/** The chosen broker as tables store it: `mdr`, or its address. */
export const chosenBroker = ({
  settings,
  isOwn,
}: Pick<HostBase<BrokerSettings>, 'settings' | 'isOwn'>): string =>
  settings.broker === mdr || isOwn(settings.broker) ? mdr : settings.broker

export function openRemoteBroker({ settings, remote, signal, clock }: Host<BrokerSettings, 'remote'>) {
  const { broker: url, tenant, tokenFile, caFile, pagesPerSecond } = settings
  const port = remote({ url, tenant, tokenFile, caFile, isConfigured: true })
  const paceMs = 1000 / pagesPerSecond
  return { port, client: createBrokerClient({ port, signal, monotonic: clock.monotonic, paceMs }) }
}

/** A broker of earlier settings, with the ids of the component's subscriptions there. */
export interface FormerBroker {
  readonly address: string
  readonly subscriptions: readonly string[]
}

/** Tries once: a broker that is unreachable keeps subscriptions whose notifications are rejected. */
export async function unsubscribeFormer(
  { address, subscriptions }: FormerBroker,
  host: Host<unknown, 'mdr' | 'remote'>,
): Promise<void> {
  const remote = address === mdr ? undefined : host.remote({ url: address, isConfigured: true })
  for (const id of subscriptions)
    await (remote ?? host.mdr).exchange({
      method: 'DELETE',
      path: `/ngsi-ld/v1/subscriptions/${encodeURIComponent(id)}`,
      timeoutMs: limits.clientRequestMs.value,
    })
  remote?.close()
}
