/**
 * The publisher of notifications, loaded with the first one: the MQTT client library takes a tenth of the
 * startup time.
 */
import type { Clock } from '#base/time/clock.ts'
import { trustedWith } from '#config/load/secret-files.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { Publisher } from './publisher.ts'

export interface PublisherParts {
  readonly opened: AsyncDisposableStack
  readonly settings: Pick<Settings, 'outbound'>
  readonly clock: Clock
}

export function openPublisher({ opened, settings: { outbound }, clock }: PublisherParts) {
  /** Ids of the connected clients, by which the gateway recognizes its own messages. */
  const clients = new Set<string>()
  let loaded: Promise<Publisher> | undefined
  async function load(): Promise<Publisher> {
    const { createPublisher } = await import('./publisher.ts')
    const ca = trustedWith(outbound.caFile)
    return createPublisher(clock, { allowsLoopback: outbound.allowLoopback, ca, clients })
  }
  opened.defer(async () => (await loaded)?.close())
  const send: Publisher['send'] = async (publication) => {
    loaded ??= load()
    return (await loaded).send(publication)
  }
  return Object.freeze({ send, clients })
}
