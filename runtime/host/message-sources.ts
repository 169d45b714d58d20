/**
 * Message brokers as sources of data for plugins: MQTT by the subscriber of bridge-in, AMQP by its consumer,
 * and decoding by the firmware bridges. The libraries are loaded with the first connection.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { bridges } from '#bridges/registry.ts'
import { passwordReader, trustedWith } from '#config/load/secret-files.ts'
import {
  type Decoded,
  type Frame,
  type SourceBroker,
  type SourceConnection,
  type SourceHandlers,
  type SourcePlace,
  type SourcesPort,
  undecodable,
} from '#contract'
import { createClaims } from '#intake/claims.ts'
import { createFilterTree, plainGrant } from '#mqtt/wire/filter-tree.ts'

export interface MessageSourcesSettings extends Pick<SourcesPort, 'allowsLoopback'> {
  /** Raw settings of the bridges by name. */
  readonly bridges: Readonly<Record<string, unknown>>
  /** Name of this gateway and plugin at other brokers. */
  readonly clientName: () => string
}

export type MessageSources = SourcesPort & { close(): Promise<void> }

export function createMessageSources(
  { clock }: { readonly clock: Clock },
  settings: MessageSourcesSettings,
): MessageSources {
  const open = new Set<SourceConnection>()
  const claims = createClaims(bridges, settings.bridges)
  // Reads any topic; its device is a name that no reading is chosen by.
  const plain = claims.claimantOf('#', { bridge: 'json', source: { deviceName: '-', fields: 'auto' } })

  async function connect(broker: SourceBroker, handlers: SourceHandlers): Promise<SourceConnection> {
    const { url, username, passwordFile, caFile } = broker
    const readPassword = passwordReader(passwordFile)
    const credentials = { url, username, ca: trustedWith(caFile) }
    if (url.startsWith('amqp')) {
      const { openAmqpConsumer } = await import('#delivery/amqp-consumer.ts')
      const queuePrefix = settings.clientName()
      return openAmqpConsumer(handlers, { ...credentials, password: readPassword, queuePrefix })
    }
    const { createSubscriber } = await import('#mqtt/bridge-in/subscriber.ts')
    let filters = createFilterTree<SourcePlace>()
    const subscriber = createSubscriber(
      {
        clock,
        random: Math.random,
        message({ topic, payload, qos, retain, dup, messageId }, settle) {
          const places = [...filters.match(topic).keys()]
          const key = qos === 0 ? '' : `${messageId} ${topic}`
          const message = { places, topic, payload, contentType: undefined, key }
          handlers.message({ ...message, isRetained: retain, isResent: dup }, () => settle(true))
        },
        connected: handlers.connected,
        lost: handlers.lost,
        refused: handlers.refused,
      },
      {
        ...credentials,
        password: readPassword?.(),
        clientId: `${settings.clientName()}-${hash('sha1', url).slice(0, 8)}`,
      },
    )
    return {
      follow(places) {
        filters = createFilterTree()
        const topics = places.filter((place) => 'topic' in place)
        for (const place of topics) filters.add(place.topic, place, plainGrant(1))
        subscriber.subscribe(topics.map(({ topic }) => topic))
      },
      isConnected: () => subscriber.stats().connected,
      close: () => subscriber.close(0),
    }
  }

  function decode(frame: Frame): Decoded {
    const bytes = frame.payload.byteLength
    if (bytes > limits.frameBytesMax.value) return undecodable(`${bytes} bytes are too many for a frame`)
    const claimant = claims.find(frame)
    if (claimant !== undefined) return claimant.decode(frame)
    return 'decode' in plain ? plain.decode(frame) : undecodable('no bridge reads it')
  }

  return Object.freeze({
    allowsLoopback: settings.allowsLoopback,
    async open(broker, handlers) {
      const connection = await connect(broker, handlers)
      const own: SourceConnection = {
        ...connection,
        async close() {
          open.delete(own)
          await connection.close()
        },
      }
      open.add(own)
      return own
    },
    decode,
    async close() {
      await Promise.all([...open].map((one) => one.close()))
    },
  } satisfies MessageSources)
}
