/**
 * The watches of the analyser: one subscription each for streams, observations, sensors, observed properties,
 * platforms, and services with access details. Pure.
 */
import type { Watch } from '#client/subscriptions/watch.ts'
import { iotLite, iotStream, qoi, rdfsLabel, sosa } from '#contract/vocabulary.ts'

const watch = (purpose: string, type: string, attributes: readonly string[]): Watch => ({
  purpose,
  type,
  attributes,
  description: `The quality analyser of this address watches: ${purpose}`,
})

export const watched: readonly Watch[] = [
  watch('stream', iotStream.IotStream, [iotStream.generatedBy, qoi.hasQuality]),
  watch('sensor', sosa.Sensor, [qoi.updateinterval, qoi.valuetype, qoi.min, qoi.max, qoi.regexp]),
  watch('observation', iotStream.StreamObservation, [sosa.hasSimpleResult, iotStream.belongsTo]),
  watch('property', sosa.ObservableProperty, [rdfsLabel]),
  watch('platform', sosa.Platform, ['location']),
  watch('service', iotLite.Service, [iotLite.endpoint]),
]

/** Ids of the analyser's subscriptions begin with it, as in the original component. */
export const subscriptionIds = 'urn:ngsi-ld:Subscription:SE_'
