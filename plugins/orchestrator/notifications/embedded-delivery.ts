/**
 * Delivery without an AMQP server: the MQTT topic `notifications/<subscription id>` of the embedded broker,
 * and a stream for each client.
 */
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { PublishOwn, RouteEnvironment } from '#contract'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type ClientStreamOwner, createClientStreamRoutes } from './client-stream-routes.ts'
import { createClientStreams, streamLaneOf } from './client-streams.ts'
import { createLanePump } from './lane-pump.ts'
import type { NotificationOutbox } from './notification-outbox.ts'

export interface EmbeddedDeliveryPorts {
  readonly outbox: NotificationOutbox
  /** Publishes by MQTT; undefined if the embedded broker is off. */
  readonly publish: PublishOwn | undefined
  readonly clientsOf: (id: string) => Iterable<string>
  readonly givenUp: (count: number) => void
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
}

type Clients = ReadonlyMap<string, unknown>

const mqttLane = 'mqtt'

/** A topic name has no wildcards. */
export const topicOf = (id: string): string =>
  `notifications/${id.replaceAll('+', '%2B').replaceAll('#', '%23')}`

export function createEmbeddedDelivery({
  outbox,
  publish,
  clientsOf,
  givenUp,
  clock,
  log,
}: EmbeddedDeliveryPorts) {
  const streams = createClientStreams({ outbox, clientsOf, givenUp })
  const routes = createClientStreamRoutes(streams)
  const pump = createLanePump({
    outbox,
    clock,
    send: ({ subscription }, { body }, done) =>
      publish!(topicOf(subscription), body, (isStored) => done(isStored ? 'confirmed' : 'rejected')),
    failed: (error) => log.error('plugin.failed', { plugin: 'orchestrator', during: 'sending', error }),
  })

  return Object.freeze({
    lanesOf: (clients: Clients): readonly string[] => [
      ...(publish === undefined ? [] : [mqttLane]),
      ...[...clients.keys()].map(streamLaneOf),
    ],
    /** Notes the clients of a subscription, none if it ended. */
    changed(id: string, clients: Clients, before: Clients): void {
      const lane = { subscription: id, name: mqttLane }
      if (clients.size === 0) pump.stop(lane)
      else if (publish !== undefined) pump.start(lane)
      for (const client of before.keys()) if (!clients.has(client)) streams.end(id, client)
      if (clients.size === 0) streams.forget(id)
    },
    /** New notifications of a subscription can be read. */
    arrived(id: string): void {
      pump.wake({ subscription: id, name: mqttLane })
      streams.arrived(id)
    },
    /** Responds to a request for the stream of a client. */
    respond(request: Request, environment: RouteEnvironment, owner: ClientStreamOwner): Response {
      if (request.method === 'GET' || request.method === 'HEAD')
        return routes.listen(request, environment, owner)
      if (request.method === 'DELETE') return routes.confirm(request, owner)
      throw badRequestData('must be GET or DELETE', 'method')
    },
    /** Open streams. */
    streams: streams.count,
    close(): void {
      pump.close()
      streams.close()
    },
  })
}
