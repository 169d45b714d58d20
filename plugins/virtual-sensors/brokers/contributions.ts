/** Values of sources: from the log of this gateway, or by notifications of another broker. */

import type { Watch } from '#client/subscriptions/watch.ts'
import type { Json } from '#contract'
import { faultTerms, iotStream, sosa } from '#contract/vocabulary.ts'
import { sourcesOf, type VirtualSensor } from '#plugins/virtual-sensors/state/virtual-sensor.ts'

export interface Contributions {
  /** Begins to follow the sources of a virtual sensor; settles when their present values are known. */
  follow(sensor: VirtualSensor): Promise<void>
  /** Ends that; its subscriptions stay. */
  unfollow(sensor: VirtualSensor): Promise<void>
  /**
   * Takes a notification.
   * @param secret the last part of the path of the callback
   * @throws http.unauthorized, http.busy, ngsi-ld.bad-request-data
   */
  receive(body: Json, secret: string): Promise<void>
  readonly complaints: () => readonly string[]
  close(): Promise<void>
}

/** Ids of the creator's subscriptions begin with it. */
export const subscriptionIds = 'urn:ngsi-ld:Subscription:VS_'

/** The subscriptions of a virtual sensor. */
export function watchesOf(sensor: VirtualSensor): readonly Watch[] {
  const sources = sourcesOf(sensor)
  const description = `The virtual sensor ${sensor.id} watches its sources`
  return [
    {
      purpose: 'observation',
      type: iotStream.StreamObservation,
      ids: sources.map(({ observation }) => observation),
      attributes: [sosa.hasSimpleResult],
      description,
    },
    {
      purpose: 'stream',
      type: iotStream.IotStream,
      ids: [...new Set(sources.map(({ stream }) => stream))],
      attributes: [faultTerms.state],
      description: `${description} for faults`,
    },
  ]
}
