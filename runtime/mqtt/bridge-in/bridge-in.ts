/**
 * Receives frames from an existing MQTT broker. It subscribes there with QoS 1 and a session of its own, and
 * acknowledges a frame only when the frame is on disk here. A frame delivered with RETAIN is marked as
 * retained. Frames that no bridge reads are acknowledged at once. The connection is that of `subscriber.ts`.
 */

import type { Instruments } from '#base/process/instruments.ts'
import { type GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { IntakePort } from '#mqtt/publish/arrivals.ts'
import { createPublishQueue } from '#mqtt/publish/publish-queue.ts'
import { createFilterTree, plainGrant } from '#mqtt/wire/filter-tree.ts'
import {
  createSubscriber,
  type DeliveredMessage,
  type Subscriber,
  type SubscriberSettings,
} from './subscriber.ts'

export interface BridgeInPorts extends Instruments {
  readonly door: Pick<Door, 'submit' | 'whenRoom'>
  readonly intake: IntakePort
  /** A random number from 0 up to 1, for the jitter of reconnecting. */
  readonly random: () => number
}

export interface BridgeInSettings extends SubscriberSettings {
  readonly topics: readonly string[]
}

export type BridgeIn = Pick<Subscriber, 'stats' | 'close'>

export function createBridgeIn(ports: BridgeInPorts, settings: BridgeInSettings): BridgeIn {
  const { intake, clock, log, metrics } = ports
  const url = withoutCredentials(settings.url)
  const admission = createPublishQueue(ports.door)
  const dropped = metrics.counter('selvedge_mqtt_dropped_total')
  const refused = metrics.counter('selvedge_mqtt_refused_total')
  const received = metrics.counter('selvedge_bridge_in_frames_total')
  const filters = createFilterTree<true>()
  for (const topic of settings.topics)
    filters.add(topic.replace(/^\$share\/[^/]+\//, ''), true, plainGrant(1))

  function take(
    { topic, payload, qos, retain, dup }: DeliveredMessage,
    settle: (isStored: boolean) => void,
  ): void {
    received.value++
    // The session may still hold subscriptions that were removed from the settings.
    const isSubscribedTo = filters.match(topic).size > 0
    const intent = isSubscribedTo ? accept(topic, payload, retain, dup) : undefined
    if (intent === undefined) {
      settle(true)
      return
    }
    const work = {
      urgent: false,
      bytes: intent.bytes,
      place: undefined,
      decide(stage: Stage) {
        admission.assertTurn()
        intent.decide(stage)
      },
      answer(error?: GatewayError) {
        if (error === undefined) settle(true)
        else if (error.entry.fault === 'resource' && qos > 0) admission.hold(work, error)
        else if (error.entry.fault === 'resource') drop()
        else settle(error.code !== 'store.closed' && refuse(topic, error))
      },
    }
    const drop = (): void => {
      dropped.value++
      settle(false)
    }
    if (!admission.offer(work, qos > 0)) drop()
  }

  function accept(topic: string, payload: Buffer, retained: boolean, isResent: boolean) {
    try {
      const receivedAt = clock.now()
      const transport = 'bridge-in'
      return intake.accept({ topic, payload, receivedAt, retained, isResent, transport, source: url })
    } catch (error) {
      refuse(topic, toGatewayError(error))
      return undefined
    }
  }

  /** Acknowledges a frame that can never be stored, because the broker would otherwise re-send it forever. */
  function refuse(topic: string, error: GatewayError): true {
    refused.value++
    log.error('mqtt.frame-refused', { topic, source: url, code: error.code, error: error.message })
    return true
  }

  const subscriber = createSubscriber(
    {
      clock,
      random: ports.random,
      message: take,
      connected: (sessionPresent) => log.info('bridge-in.connected', { url, sessionPresent }),
      lost: (inFlight) => log.warn('bridge-in.lost', { url, inFlight }),
      refused: (reason) => log.warn('bridge-in.refused', { url, reason }),
    },
    settings,
  )
  subscriber.subscribe(settings.topics)

  return Object.freeze({
    stats: subscriber.stats,
    async close(deadlineMs) {
      await subscriber.close(deadlineMs)
      admission.close()
    },
  } satisfies BridgeIn)
}

/** The broker's address without credentials, for logs and for `source` of frames. */
function withoutCredentials(address: string): string {
  const { protocol, host } = new URL(address)
  return `${protocol}//${host}`
}
