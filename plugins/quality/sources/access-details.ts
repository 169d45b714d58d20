/**
 * Access details of a stream: where its data comes from, as the Service entity of `iot-stream:providedBy`
 * states it, and whether the settings allow that broker. Pure. An entity never supplies credentials.
 */

import { isLoopback } from '#base/load/loopback.ts'
import { propertyValue } from '#client/streams/stream-entities.ts'
import type { SourcePlace } from '#contract'
import {
  dctermsFormat,
  iotLite,
  selvedgeEntity,
  selvedgeExchange,
  selvedgeField,
  selvedgeQueue,
  selvedgeRoutingKey,
  selvedgeTopic,
} from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'

export interface AccessDetails {
  /**
   * `mqtt://host:port`, mqtts, amqp or amqps; for AMQP with the virtual host as path. For an NGSI-LD broker
   * http or https, with its path before `/ngsi-ld/v1`.
   */
  readonly address: string
  readonly place: StreamPlace
  /** Media type of the payloads. */
  readonly format: string | undefined
  /** The field of a payload that the stream observes. */
  readonly field: string | undefined
}

/** A place of messages, or the observation entity at an NGSI-LD broker. */
export type StreamPlace = SourcePlace | { readonly entity: string }

const usualPorts = {
  'http:': '80',
  'https:': '443',
  'mqtt:': '1883',
  'mqtts:': '8883',
  'amqp:': '5672',
  'amqps:': '5671',
} as const

/** The address in canonical form, with port and without path; undefined if it is none of a broker. */
export function canonicalSource(url: string): string | undefined {
  const { protocol, hostname, port } = URL.parse(url) ?? { protocol: '', hostname: '', port: '' }
  if (!(protocol in usualPorts) || hostname === '') return undefined
  const usual = usualPorts[protocol as keyof typeof usualPorts]
  return `${protocol}//${hostname.toLowerCase()}:${port === '' ? usual : port}`
}

/**
 * Reads the Service entity of a stream. Returns undefined if it is no broker, or the mistake as text. An HTTP
 * address is an NGSI-LD broker only if interface type or path say so; devices send to others.
 */
export function accessOf(service: Entity, streamId: string): AccessDetails | string | undefined {
  const text = (name: string): string | undefined => {
    const value = propertyValue(service, name)
    return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
  }
  const interfaceType = text(iotLite.interfaceType) ?? ''
  const endpoint = withScheme(text(iotLite.endpoint) ?? '', interfaceType)
  const origin = canonicalSource(endpoint)
  if (origin === undefined) return undefined
  const { username, password, pathname } = new URL(endpoint)
  if (username !== '' || password !== '')
    return 'the endpoint contains credentials; they belong in quality.sources.hosts'
  const more = { format: text(dctermsFormat), field: text(selvedgeField) }
  if (origin.startsWith('http')) {
    if (!/ngsi-?ld/i.test(interfaceType) && !pathname.includes('/ngsi-ld')) return undefined
    const usual = streamId.replace(/^urn:ngsi-ld:IotStream:/, 'urn:ngsi-ld:StreamObservation:')
    const path = pathname.replace(/\/+$/, '').replace(/\/ngsi-ld(\/v1)?$/, '')
    return { address: origin + path, place: { entity: text(selvedgeEntity) ?? usual }, ...more }
  }
  if (origin.startsWith('mqtt')) {
    const topic = text(selvedgeTopic) ?? decoded(pathname.slice(1))
    if (topic === undefined || !isTopicFilter(topic)) return 'urn:selvedge:ns:topic must be an MQTT topic'
    return { address: origin, place: { topic }, ...more }
  }
  const [queue, exchange] = [text(selvedgeQueue), text(selvedgeExchange)]
  const address = pathname === '/' ? origin : origin + pathname
  if (queue !== undefined) return { address, place: { queue }, ...more }
  if (exchange === undefined) return 'urn:selvedge:ns:queue or urn:selvedge:ns:exchange must name a place'
  return { address, place: { exchange, routingKey: text(selvedgeRoutingKey) ?? '' }, ...more }
}

/** `broker:1883` with the interface type MQTT is `mqtt://broker:1883`. */
const withScheme = (endpoint: string, interfaceType: string): string =>
  endpoint.includes('://') || !/^(?:mqtt|amqp)s?$/i.test(interfaceType)
    ? endpoint
    : `${interfaceType.toLowerCase()}://${endpoint}`

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}

/** MQTT 3.1.1, 4.7: `#` only as the last level, `+` only as a whole level. No shared or system topics. */
const isTopicFilter = (topic: string): boolean =>
  topic !== '' &&
  !topic.startsWith('$') &&
  topic
    .split('/')
    .every(
      (level, i, all) => level === '+' || (level === '#' && i === all.length - 1) || !/[+#\0]/.test(level),
    )

/** An entry of `quality.sources.hosts`. */
export interface AllowedHost {
  readonly url: string
  readonly username?: string | undefined
  readonly passwordFile?: string | undefined
  readonly caFile?: string | undefined
  /** Bearer token for an NGSI-LD broker. */
  readonly tokenFile?: string | undefined
}

/** The brokers that may be followed. */
export interface AllowedHosts {
  readonly hosts: readonly AllowedHost[]
  /** Whether loopback addresses are allowed where `hosts` is empty. */
  readonly allowsLoopback: boolean
}

/**
 * The entry that allows an address: one with the same scheme, host and port. Without entries, loopback
 * addresses are allowed if the settings allow requests to this machine. Undefined if nothing allows it.
 */
export function allowedHost(
  address: string,
  { hosts, allowsLoopback }: AllowedHosts,
): AllowedHost | undefined {
  const origin = canonicalSource(address)!
  if (hosts.length > 0) return hosts.find(({ url }) => canonicalSource(url) === origin)
  return allowsLoopback && isLoopback(new URL(origin).hostname) ? { url: origin } : undefined
}
