/**
 * What the index watches at a broker, as subscriptions there: one each for streams, sensors, quality, points,
 * observed properties and platforms. Here are their bodies; who makes them knows the broker. Pure.
 */
import type { Json } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'

/** What is watched, by the last part of the callback's path. */
export const watched: Readonly<Record<string, string>> = {
  stream: 'http://purl.org/iot/ontology/iot-stream#IotStream',
  sensor: 'http://www.w3.org/ns/sosa/Sensor',
  qoi: 'https://w3id.org/iot/qoi#Quality',
  point: 'http://www.w3.org/2003/01/geo/wgs84_pos#Point',
  property: 'http://www.w3.org/ns/sosa/ObservableProperty',
  platform: 'http://www.w3.org/ns/sosa/Platform',
}

/** Where notifications go. */
export const callbackOf = (address: string, purpose: string): string =>
  `${address}/api/notification/${purpose}`

/** @param endpoint members beside the address. */
export function subscriptionOf(
  purpose: string,
  id: string,
  { uri, ...endpoint }: { readonly uri: string; readonly [member: string]: Json },
): JsonObject {
  return {
    id,
    type: 'Subscription',
    description: `The index of this address watches: ${purpose}`,
    entities: [{ type: watched[purpose]! }],
    notification: { format: 'normalized', endpoint: { uri, accept: 'application/json', ...endpoint } },
  }
}
