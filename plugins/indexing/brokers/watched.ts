/**
 * The entity types that the index watches, and the bodies of the subscriptions for them: one each for
 * streams, sensors, quality, points, observed properties and platforms. Pure functions.
 */
import type { Json } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'

/** Watched types by purpose; the purpose is the last part of the callback's path. */
export const watched: Readonly<Record<string, string>> = {
  stream: 'http://purl.org/iot/ontology/iot-stream#IotStream',
  sensor: 'http://www.w3.org/ns/sosa/Sensor',
  qoi: 'https://w3id.org/iot/qoi#Quality',
  point: 'http://www.w3.org/2003/01/geo/wgs84_pos#Point',
  property: 'http://www.w3.org/ns/sosa/ObservableProperty',
  platform: 'http://www.w3.org/ns/sosa/Platform',
}

/** Callback address for a purpose. */
export const callbackOf = (address: string, purpose: string): string =>
  `${address}/api/notification/${purpose}`

/** @param endpoint further members besides the address. */
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
