/**
 * Streams of a gateway in tests of the pattern extractor: their entities and values, registered models, and the
 * Events of windows.
 */
import { expect } from 'vitest'
import type { HttpClient } from '#test/kit/http-gateway.ts'

export const sosa = 'http://www.w3.org/ns/sosa/'
export const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
export const patience = { interval: 100 }

export const value = (given: unknown, more: object = {}) => ({ type: 'Property', value: given, ...more })
export const to = (object: string) => ({ type: 'Relationship', object })
export const propertyId = (name: string): string => `urn:ngsi-ld:ObservableProperty:${name}`

/** The entities of a stream of a property at a place. */
export const streamEntities = (name: string, property: string, place: readonly [number, number]) => [
  {
    id: `urn:ngsi-ld:Sensor:${name}`,
    type: `${sosa}Sensor`,
    [`${sosa}observes`]: to(propertyId(property)),
    location: { type: 'GeoProperty', value: { type: 'Point', coordinates: place } },
  },
  {
    id: `urn:ngsi-ld:IotStream:${name}`,
    type: `${iotStream}IotStream`,
    [`${iotStream}generatedBy`]: to(`urn:ngsi-ld:Sensor:${name}`),
  },
  {
    id: `urn:ngsi-ld:StreamObservation:${name}`,
    type: `${iotStream}StreamObservation`,
    [`${iotStream}belongsTo`]: to(`urn:ngsi-ld:IotStream:${name}`),
  },
]

export interface Event {
  readonly id: string
  readonly [name: string]: unknown
}

export const at = (event: Event, name: string): unknown =>
  ((event[`${iotStream}${name}`] as { value: { '@value'?: string } }).value['@value'] ??
    (event[`${iotStream}${name}`] as { value: unknown }).value) as unknown

/** Start, end and label of each Event, in order of the ends. */
export const summary = (list: readonly Event[]) =>
  list
    .map((event) => [at(event, 'windowStart'), at(event, 'windowEnd'), at(event, 'label')])
    .sort((a, b) => (String(a[1]) < String(b[1]) ? -1 : 1))

export const minute = 60_000
export const begin = Date.UTC(2026, 4, 4, 8)
export const iso = (minutes: number): string =>
  new Date(begin + minutes * minute).toISOString().replace('.000Z', 'Z')

/** @param client of the gateway at the moment. */
export function patternSite(client: () => HttpClient) {
  async function create(entities: readonly object[]): Promise<void> {
    const made = await client().send('POST', '/ngsi-ld/v1/entityOperations/create', entities)
    expect(made.status).toBe(201)
  }

  async function observe(name: string, given: unknown, time: number): Promise<void> {
    const path = `/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:${name}/attrs`
    const result = value(given, { observedAt: new Date(time).toISOString() })
    const answer = await client().send('POST', path, { [`${sosa}hasSimpleResult`]: result })
    expect(answer.status).toBeLessThan(300)
  }

  async function events(stream: string): Promise<readonly Event[]> {
    const q = encodeURIComponent(`iot-stream:detectedFrom=="urn:ngsi-ld:IotStream:${stream}"`)
    const answer = await client().get(`/ngsi-ld/v1/entities?type=Event&q=${q}&limit=1000&options=sysAttrs`)
    expect(answer.status).toBe(200)
    return answer.json() as readonly Event[]
  }

  async function register(body: object): Promise<{ id: string; subscriptionId: string }> {
    const answer = await client().send('POST', '/patterns/api/model', body)
    expect(answer.status).toBe(201)
    return answer.json() as { id: string; subscriptionId: string }
  }

  return { create, observe, events, register }
}
