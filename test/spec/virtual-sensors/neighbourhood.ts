/**
 * Sensors around a place that vary together, for tests of virtual sensors: their entities, history and
 * values.
 */
import { expect, vi } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import type { HttpClient } from '#test/kit/http-gateway.ts'

export const sosa = 'http://www.w3.org/ns/sosa/'
export const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
export const qoi = 'https://w3id.org/iot/qoi#'
const rdfs = 'http://www.w3.org/2000/01/rdf-schema#'

export const slotMs = 600_000
export const patience = { interval: 50 }

export const idOf = (kind: string, name: string): string => `urn:ngsi-ld:${kind}:${name}`
const to = (object: string) => ({ type: 'Relationship', object })
const value = (given: unknown) => ({ type: 'Property', value: given })
const iso = (time: number): string => new Date(time).toISOString()

export interface Envelope {
  readonly status: string
  readonly success: boolean
  readonly description: string
  readonly data: Record<string, unknown>
}

export interface ShownState {
  readonly id: string
  readonly state: string
  readonly sources: readonly string[]
  readonly error: string | null
}

interface Placed {
  readonly label?: string
  /** Degrees north of [10, 56]. */
  readonly north?: number
  readonly more?: object
}

/** @param client of the gateway that has the sensors at the moment. */
export function neighbourhoodOf(client: () => HttpClient) {
  async function create(
    name: string,
    { label = 'temperature', north = 0, more = {} }: Placed = {},
  ): Promise<void> {
    const location = { type: 'GeoProperty', value: { type: 'Point', coordinates: [10, 56 + north] } }
    const made = await client().send('POST', '/ngsi-ld/v1/entityOperations/create', [
      {
        id: idOf('Sensor', name),
        type: `${sosa}Sensor`,
        location,
        [`${sosa}observes`]: to(idOf('ObservableProperty', name)),
        [`${sosa}madeObservation`]: to(idOf('StreamObservation', name)),
        ...more,
      },
      {
        id: idOf('ObservableProperty', name),
        type: `${sosa}ObservableProperty`,
        [`${rdfs}label`]: value(label),
      },
      {
        id: idOf('IotStream', name),
        type: `${iotStream}IotStream`,
        [`${iotStream}generatedBy`]: to(idOf('Sensor', name)),
      },
      {
        id: idOf('StreamObservation', name),
        type: `${iotStream}StreamObservation`,
        [`${iotStream}belongsTo`]: to(idOf('IotStream', name)),
      },
    ])
    expect(made.status).toBe(201)
  }

  const attributes = (name: string) => `/ngsi-ld/v1/entities/${idOf('StreamObservation', name)}/attrs`

  return {
    create,
    /** Values of the last `count` slots, until now. */
    async history(name: string, count: number, valueAt: (slot: number) => number): Promise<void> {
      const last = Math.floor(Date.now() / slotMs)
      const instances = Array.from({ length: count }, (_, i) => {
        const slot = last - count + 1 + i
        return { ...value(valueAt(slot)), observedAt: iso(slot * slotMs) }
      })
      const path = `/ngsi-ld/v1/temporal/entities/${idOf('StreamObservation', name)}/attrs`
      const written = await client().send('POST', path, { [`${sosa}hasSimpleResult`]: instances })
      expect(written.status).toBeLessThan(300)
    },
    async observe(name: string, given: number, time = Date.now()): Promise<void> {
      const result = { ...value(given), observedAt: iso(time), unitCode: 'CEL' }
      const written = await client().send('POST', attributes(name), { [`${sosa}hasSimpleResult`]: result })
      expect(written.status).toBeLessThan(300)
    },
    async setState(name: string, state: string): Promise<void> {
      const path = `/ngsi-ld/v1/entities/${idOf('IotStream', name)}/attrs`
      const written = await client().send('POST', path, { 'urn:selvedge:ns:state': value(state) })
      expect(written.status).toBeLessThan(300)
    },
    /** The published result of a virtual sensor that meets a condition. */
    published: (sensor: string, isWanted: (result: Result) => boolean = () => true): Promise<Result> =>
      vi.waitFor(async () => {
        const id = sensor.replace('Sensor', 'StreamObservation')
        const answer = await client().get(`/ngsi-ld/v1/entities/${id}`)
        expect(answer.status).toBe(200)
        const result = (answer.json() as Record<string, unknown>)[`${sosa}hasSimpleResult`] as
          | Result
          | undefined
        expect(result).toSatisfy((found?: Result) => found !== undefined && isWanted(found))
        return result!
      }, patience),
  }
}

export interface Result {
  readonly value: number
  readonly observedAt: string
  readonly unitCode?: string
  readonly [member: string]: unknown
}

/** A course that all sensors share, which no clock explains, and a small noise of each. */
export function courseOf(seed: number, { factor = 1, offset = 0 } = {}): (slot: number) => number {
  const noise = createSeededRandom(seed)
  return (slot) => {
    const shared = Math.sin(slot / 11) * 4 + Math.sin(slot / 3.7) * 2 + Math.sin(slot / 29) * 3
    return Math.round((offset + factor * shared + 0.2 * (noise() - 0.5)) * 100) / 100
  }
}
