/**
 * The callbacks of the original component. The log already reports what this gateway's own broker knows;
 * values that another broker or a client sends are analysed too, each once.
 */

import { type BrokerItems, itemsOf, nonEmpty, notifiedItems } from '#client/requests/broker-messages.ts'
import { linksOf, timedResult } from '#client/streams/stream-entities.ts'
import type { Json } from '#contract'
import { iotStream } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { StreamValue } from '#plugins/patterns/groups/analysis.ts'
import type { LogReader } from '#plugins/patterns/groups/log-reader.ts'
import type { PlacedStreams } from '#plugins/patterns/groups/placed-streams.ts'
import { cachedValueOf } from '#plugins/patterns/windows/cached-series.ts'

export interface NotificationsPorts {
  readonly reader: LogReader
  readonly streams: PlacedStreams
  readonly now: () => number
}

export type Notifications = ReturnType<typeof createNotifications>

export function createNotifications({ reader, streams, now }: NotificationsPorts) {
  const itemsIn = (body: Json): BrokerItems => nonEmpty(itemsOf(notifiedItems(body) ?? [], now()))

  function valuesOf(entity: Entity): readonly StreamValue[] {
    const observed = timedResult(entity)
    const value = cachedValueOf(observed?.value)
    const stream = linksOf(entity, iotStream.belongsTo)[0] ?? streams.streamOf(entity.id)
    return observed === undefined || value === undefined || stream === undefined
      ? []
      : [{ stream, time: observed.time, value }]
  }

  return Object.freeze({
    /** Reads the notified streams again at this gateway's broker. @throws GatewayError */
    async streams(body: Json): Promise<void> {
      const { entities, deleted } = itemsIn(body)
      await reader.reread([...deleted, ...entities.map(({ id }) => id)])
    },
    /** Takes the values of observation entities. @throws GatewayError */
    async observations(body: Json): Promise<void> {
      const { entities } = itemsIn(body)
      await reader.observe(entities.flatMap(valuesOf))
    },
  })
}
