/**
 * Values of sources at this gateway: they come through the log, which is followed while a virtual sensor
 * exists. The subscriptions only show what is watched; a deleted one is created again.
 */
import { GatewayError } from '#base/register/errors.ts'
import { numberOf } from '#client/streams/stream-entities.ts'
import { createOwnSubscriptions } from '#client/subscriptions/own-subscriptions.ts'
import type { ChangeBatch, Host } from '#contract'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { SensorTable } from '#plugins/virtual-sensors/state/sensor-statements.ts'
import type { SourceReadings } from '#plugins/virtual-sensors/state/source-readings.ts'
import { sourcesOf, type VirtualSensor } from '#plugins/virtual-sensors/state/virtual-sensor.ts'
import { type Contributions, subscriptionIds, watchesOf } from './contributions.ts'
import { lookbackOf, readLatest, takeEntity } from './taken-entities.ts'

export interface OwnContributionsPorts {
  readonly host: Host<unknown, 'mdr' | 'changes'>
  readonly readings: SourceReadings
  readonly table: SensorTable
  /** Base address of callbacks; undefined until the listeners are open. */
  readonly base: () => string | undefined
}

const types = new Set([iotStream.IotStream, iotStream.StreamObservation])

export function createOwnContributions({
  host,
  readings,
  table,
  base,
}: OwnContributionsPorts): Contributions {
  const { mdr, changes, clock, log } = host
  const followed = new Map<VirtualSensor, ReturnType<typeof createOwnSubscriptions>>()
  let following: { close(): void } | undefined

  function take({ changed, deleted, observed }: ChangeBatch): void {
    for (const state of changed) if (readings.has(state.id)) takeEntity(readings, state.entity())
    for (const id of deleted) {
      readings.forget(id)
      readings.setFaulty(id, false)
    }
    for (const { id, name, dataset, time, value } of observed) {
      const number = name === sosa.hasSimpleResult && dataset === '' ? numberOf(value) : undefined
      if (number !== undefined) readings.observe(id, { time, value: number })
    }
  }

  /** Takes the present state of the sources. */
  async function fill(sensor: VirtualSensor): Promise<void> {
    await readLatest({ broker: mdr, readings, now: clock.now }, sensor)
    for (const { stream, observation } of sourcesOf(sensor))
      for (const id of [stream, observation]) {
        const state = changes.entity(id)
        if (state !== undefined) takeEntity(readings, state.entity())
      }
  }

  async function readAnew(): Promise<number> {
    const position = changes.position()
    for (const sensor of followed.keys()) await fill(sensor)
    return position
  }

  const subscriptionsOf = (sensor: VirtualSensor) =>
    createOwnSubscriptions({
      broker: mdr,
      plugin: 'virtual-sensors',
      watches: watchesOf(sensor),
      idPrefix: subscriptionIds,
      callback: (purpose) => base() && `${base()}/callback/${purpose}`,
      ids: () => sensor.facts.subscriptions ?? {},
      saveIds(subscriptions) {
        sensor.facts = { ...sensor.facts, subscriptions }
        table.putFacts(sensor)
      },
      log,
      signal: sensor.work.signal,
    })

  return Object.freeze({
    async follow(sensor) {
      readings.add(sourcesOf(sensor), lookbackOf(sensor))
      const subscriptions = subscriptionsOf(sensor)
      followed.set(sensor, subscriptions)
      following ??= changes.follow(changes.position(), { types, observes: 'newest', take, readAnew })
      await fill(sensor)
      await subscriptions.check()
    },
    async unfollow(sensor) {
      const subscriptions = followed.get(sensor)
      if (subscriptions === undefined) return
      followed.delete(sensor)
      subscriptions.close()
      readings.remove(sourcesOf(sensor))
      if (followed.size > 0) return
      following?.close()
      following = undefined
    },
    async receive() {
      throw new GatewayError('http.unauthorized', 'no subscription has this callback')
    },
    complaints: () => [...followed.values()].flatMap((one) => one.failures()),
    async close() {
      for (const subscriptions of followed.values()) subscriptions.close()
      following?.close()
    },
  } satisfies Contributions)
}
