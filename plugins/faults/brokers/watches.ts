/** The subscriptions of fault detection at its broker. Pure. */
import type { Watch } from '#client/subscriptions/watch.ts'
import { faultTerms, fd, iotStream, qoi, rdfsLabel, sosa } from '#contract/vocabulary.ts'

const watch = (purpose: string, type: string, attributes: readonly string[]): Watch => ({
  purpose,
  type,
  attributes,
  description: `Fault detection of this address watches: ${purpose}`,
})

export const watched: readonly Watch[] = [
  watch('stream', iotStream.IotStream, [
    iotStream.generatedBy,
    qoi.hasQuality,
    faultTerms.period,
    faultTerms.maxRate,
  ]),
  watch('sensor', sosa.Sensor, [
    qoi.updateinterval,
    qoi.min,
    qoi.max,
    fd.enable,
    faultTerms.period,
    faultTerms.maxRate,
  ]),
  watch('observation', iotStream.StreamObservation, [sosa.hasSimpleResult, iotStream.belongsTo]),
  watch('property', sosa.ObservableProperty, [rdfsLabel]),
  watch('platform', sosa.Platform, ['location']),
  watch('quality', qoi.Quality, [qoi.plausibility]),
]

export const purposes: readonly string[] = watched.map(({ purpose }) => purpose)

/** Ids of the subscriptions begin with it, as in the original component. */
export const subscriptionIds = 'urn:ngsi-ld:Subscription:FD_'
