/**
 * Entity ids of the sensor model: `urn:ngsi-ld:<Kind>:<device>:<field>`, with the hardware id unchanged.
 * Characters that a URI path (RFC 3986) cannot contain are percent-encoded, including `%` itself, so
 * different names yield different ids. `:` is not encoded: device `a:b` with field `c` is device `a` with
 * field `b:c`, as SenML requires.
 */

export type SiteEntityKind =
  | 'Platform'
  | 'Sensor'
  | 'IotStream'
  | 'ObservableProperty'
  | 'StreamObservation'
  | 'Service'

/** The entities of one field of one device. */
export interface SiteIds {
  readonly platform: string
  readonly sensor: string
  readonly stream: string
  readonly property: string
  readonly observation: string
  /** Identified by device and topic: the fields on one topic share it. */
  readonly service: string
}

export interface FieldPlace {
  readonly device: string
  readonly field: string
  /** MQTT topic or HTTP path on which the field was first seen. */
  readonly topic: string
  /** Label of the shared ObservableProperty; undefined when each field has its own. */
  readonly sharedLabel?: string | undefined
}

export function siteIds({ device, field, topic, sharedLabel }: FieldPlace): SiteIds {
  const property = sharedLabel === undefined ? [device, field] : [sharedLabel]
  return {
    platform: siteId('Platform', device),
    sensor: siteId('Sensor', device, field),
    stream: siteId('IotStream', device, field),
    property: siteId('ObservableProperty', ...property),
    observation: siteId('StreamObservation', device, field),
    service: siteId('Service', device, topic),
  }
}

export function siteId(kind: SiteEntityKind, ...parts: readonly string[]): string {
  return ['urn:ngsi-ld', kind, ...parts.map(uriText)].join(':')
}

/** Characters not allowed in a path: all but unreserved, sub-delims, `:`, `@` and `/`. */
const forbidden = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/]/gu

function uriText(text: string): string {
  return text.toWellFormed().replace(forbidden, encodeURIComponent)
}
