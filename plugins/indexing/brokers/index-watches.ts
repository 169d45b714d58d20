/**
 * The watches of the index: one subscription each for streams, sensors, quality, points, observed properties
 * and platforms. Pure.
 */
import type { Watch } from '#client/subscriptions/watch.ts'
import { paths, relativeLocation } from '#plugins/indexing/entries/entity-kinds.ts'

const qoi = 'https://w3id.org/iot/qoi#'
const rdfs = 'http://www.w3.org/2000/01/rdf-schema#'

const watch = (purpose: string, type: string, attributes: readonly string[]): Watch => ({
  purpose,
  type,
  attributes,
  description: `The index of this address watches: ${purpose}`,
})

/** The purpose is the last part of the callback's path. */
export const watched: readonly Watch[] = [
  watch('stream', 'http://purl.org/iot/ontology/iot-stream#IotStream', [
    paths.generatedBy,
    `${qoi}hasQuality`,
  ]),
  watch('sensor', 'http://www.w3.org/ns/sosa/Sensor', ['location', paths.relativePlace, paths.observes]),
  watch(
    'qoi',
    `${qoi}Quality`,
    ['plausibility', 'completeness', 'age', 'frequency'].map((name) => qoi + name),
  ),
  watch('point', 'http://www.w3.org/2003/01/geo/wgs84_pos#Point', [relativeLocation]),
  watch('property', 'http://www.w3.org/ns/sosa/ObservableProperty', [`${rdfs}label`]),
  watch('platform', 'http://www.w3.org/ns/sosa/Platform', ['location', `${rdfs}label`]),
]

/** The watched type of a purpose. */
export const typeOf = (purpose: string): string | undefined =>
  watched.find((one) => one.purpose === purpose)?.type

/** Callback address for a purpose. */
export const callbackOf = (address: string, purpose: string): string =>
  `${address}/api/notification/${purpose}`
