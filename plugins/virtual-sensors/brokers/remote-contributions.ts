/**
 * Values of sources at another broker: subscriptions there notify a callback whose path ends with a secret.
 * After an interruption the latest values are read.
 */
import { toGatewayError } from '#base/register/errors.ts'
import { itemsOf, nonEmpty, notifiedItems } from '#client/requests/broker-messages.ts'
import type { BrokerClient, RequestTrouble } from '#client/requests/broker-requests.ts'
import { createBrokerFollower } from '#client/subscriptions/broker-follower.ts'
import { checkSignedPurpose, signedPurpose } from '#client/subscriptions/callback-signature.ts'
import type { BrokerPort, HostBase } from '#contract'
import { iotStream } from '#contract/vocabulary.ts'
import type { BrokerEntities } from '#plugins/virtual-sensors/candidates/broker-entities.ts'
import type { SensorTable } from '#plugins/virtual-sensors/state/sensor-statements.ts'
import type { SourceReadings } from '#plugins/virtual-sensors/state/source-readings.ts'
import { sourcesOf, type VirtualSensor } from '#plugins/virtual-sensors/state/virtual-sensor.ts'
import { type Contributions, subscriptionIds, watchesOf } from './contributions.ts'
import { lookbackOf, readLatest, takeEntity } from './taken-entities.ts'

export interface RemoteContributionsPorts {
  readonly host: HostBase<unknown>
  readonly port: BrokerPort
  readonly client: BrokerClient
  readonly entities: BrokerEntities
  readonly readings: SourceReadings
  readonly table: SensorTable
  /** Base address of callbacks; undefined until the listeners are open. */
  readonly base: () => string | undefined
}

export function createRemoteContributions(ports: RemoteContributionsPorts): Contributions {
  const { host, port, client, entities, readings, table, base } = ports
  const { clock, log } = host
  const followers = new Map<VirtualSensor, ReturnType<typeof createBrokerFollower>>()
  let notifications = 0

  async function read(sensor: VirtualSensor): Promise<RequestTrouble | undefined> {
    try {
      await readSources(sensor)
      return undefined
    } catch (thrown) {
      const { code, message } = toGatewayError(thrown)
      return { kind: code === 'peer.refused' ? 'refused' : 'down', reason: message }
    }
  }

  async function readSources(sensor: VirtualSensor): Promise<void> {
    await readLatest({ broker: port, readings, now: clock.now }, sensor)
    const sources = sourcesOf(sensor)
    const observations = await entities.byId(
      sources.map(({ observation }) => observation),
      iotStream.StreamObservation,
    )
    const streams = await entities.byId(
      sources.map(({ stream }) => stream),
      iotStream.IotStream,
    )
    for (const entity of [...observations.values(), ...streams.values()]) takeEntity(readings, entity)
  }

  function rowOf(sensor: VirtualSensor) {
    return {
      state: () => sensor.followedState,
      facts: () => sensor.facts,
      set(change: { readonly state?: string; readonly facts?: VirtualSensor['facts'] }) {
        const before = JSON.stringify(sensor.facts.subscriptions ?? {})
        sensor.followedState = change.state ?? sensor.followedState
        sensor.facts = change.facts ?? sensor.facts
        // Only the ids of subscriptions are needed after a restart.
        if (JSON.stringify(sensor.facts.subscriptions ?? {}) !== before) table.putFacts(sensor)
      },
    }
  }

  const followerOf = (sensor: VirtualSensor) =>
    createBrokerFollower({
      plugin: 'virtual-sensors',
      watches: watchesOf(sensor),
      idPrefix: subscriptionIds,
      client,
      row: rowOf(sensor),
      read: () => read(sensor),
      isNotified: () => notifications > 0,
      base,
      callback: (address, purpose) => `${address}/callback/${signedPurpose(table.secret, purpose)}`,
      clock,
      log,
      signal: sensor.work.signal,
    })

  return Object.freeze({
    async follow(sensor) {
      readings.add(sourcesOf(sensor), lookbackOf(sensor))
      const follower = followerOf(sensor)
      followers.set(sensor, follower)
      // If the broker is away, the follower reads it when it answers.
      await read(sensor)
      follower.start()
    },
    async unfollow(sensor) {
      const follower = followers.get(sensor)
      if (follower === undefined) return
      followers.delete(sensor)
      readings.remove(sourcesOf(sensor))
      await follower.close()
    },
    async receive(body, secret) {
      checkSignedPurpose(table.secret, secret)
      notifications++
      const given = nonEmpty(itemsOf(notifiedItems(body) ?? [], clock.now()))
      for (const entity of given.entities) takeEntity(readings, entity)
      for (const id of given.deleted) readings.forget(id)
      for (const follower of followers.values()) follower.reportHeard()
    },
    complaints: () =>
      [...followers].flatMap(([{ id }, follower]) => follower.complaints().map((one) => `${id}: ${one}`)),
    async close() {
      await Promise.all([...followers.values()].map((one) => one.close()))
    },
  } satisfies Contributions)
}
