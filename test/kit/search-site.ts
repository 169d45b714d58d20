/**
 * A site to search: platforms, sensors, streams, properties, observations, quality and events as sensor integration and the
 * components of the platform write them, at a gateway whose search enabler is asked over HTTP.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from './gateway-inside.ts'

export const sosa = 'http://www.w3.org/ns/sosa/'
export const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
export const qoi = 'https://w3id.org/iot/qoi#'
export const rdfsLabel = 'http://www.w3.org/2000/01/rdf-schema#label'
export const alternativeType = 'http://www.agtinternational.com/ontologies/ngsi-ld#alternativeType'

export type Entity = { readonly id: string; readonly type: string } & Readonly<Record<string, unknown>>

export const property = (value: unknown): object => ({ type: 'Property', value })
export const link = (object: string | readonly string[]): object => ({ type: 'Relationship', object })
export const place = (lon: number, lat: number): object => ({
  type: 'GeoProperty',
  value: { type: 'Point', coordinates: [lon, lat] },
})

/** A field of a device as sensor integration makes it: platform aside, its four entities and its quality. */
export interface FieldFacts {
  readonly device: string
  readonly field: string
  readonly value: unknown
  readonly completeness?: number
}

export const idOf = (kind: string, device: string, field?: string): string =>
  `urn:ngsi-ld:${kind}:${device}${field === undefined ? '' : `:${field}`}`

export function platformOf(device: string, fields: readonly string[], at: readonly [number, number]): Entity {
  return {
    id: idOf('Platform', device),
    type: `${sosa}Platform`,
    [rdfsLabel]: property(`platform ${device}`),
    [`${sosa}hosts`]: link(fields.map((field) => idOf('Sensor', device, field))),
    location: place(...at),
  }
}

export function fieldEntities({ device, field, value, completeness }: FieldFacts): Entity[] {
  const id = (kind: string): string => idOf(kind, device, field)
  const hasQuality = completeness === undefined ? 'urn:ngsi-ld:Quality:noqualityyet' : id('QoI')
  const quality: Entity[] =
    completeness === undefined
      ? []
      : [
          {
            id: id('QoI'),
            type: `${qoi}Quality`,
            [`${qoi}completeness`]: {
              ...property('NA'),
              [`${qoi}hasAbsoluteValue`]: property(Math.round(completeness * 100)),
              [`${qoi}hasRatedValue`]: property(completeness),
            },
            [`${qoi}age`]: { ...property('NA'), [`${qoi}hasAbsoluteValue`]: property(3) },
          },
        ]
  return [
    {
      id: id('Sensor'),
      type: `${sosa}Sensor`,
      [`${sosa}isHostedBy`]: link(idOf('Platform', device)),
      [`${sosa}observes`]: link(id('ObservableProperty')),
      [`${sosa}madeObservation`]: link(id('StreamObservation')),
      [`${qoi}min`]: property('NA'),
      [`${qoi}max`]: property(80),
      [`${qoi}updateinterval`]: { ...property(10), [`${qoi}unit`]: property('seconds') },
      [`${qoi}valuetype`]: property('float'),
    },
    {
      id: id('IotStream'),
      type: `${iotStream}IotStream`,
      [`${iotStream}generatedBy`]: link(id('Sensor')),
      [`${iotStream}observes`]: link(id('ObservableProperty')),
      [`${sosa}observes`]: link(id('ObservableProperty')),
      [`${qoi}hasQuality`]: link(hasQuality),
    },
    {
      id: id('ObservableProperty'),
      type: `${sosa}ObservableProperty`,
      [rdfsLabel]: property(field.toLowerCase()),
      [`${sosa}isObservedBy`]: link(id('Sensor')),
    },
    {
      id: id('StreamObservation'),
      type: `${iotStream}StreamObservation`,
      [`${iotStream}belongsTo`]: link(id('IotStream')),
      [`${sosa}madeBySensor`]: link(id('Sensor')),
      [`${sosa}observedProperty`]: link(id('ObservableProperty')),
      [`${sosa}hasSimpleResult`]: {
        ...property(value),
        observedAt: '2026-02-01T10:00:00.000Z',
        unitCode: 'CEL',
      },
      [`${sosa}resultTime`]: property('2026-02-01T10:00:00.000Z'),
    },
    ...quality,
  ]
}

export interface Answered {
  readonly data?: unknown
  readonly errors?: readonly {
    readonly message: string
    readonly path?: readonly (string | number)[]
    readonly extensions?: Readonly<Record<string, unknown>>
  }[]
  readonly extensions?: {
    readonly reads?: { readonly requests: number; readonly entities: number }
    readonly warnings?: readonly string[]
  }
}

export interface SearchSite {
  /** Of the gateway. */
  readonly url: string
  readonly gateway: GatewayInside
  create(entities: readonly Entity[]): Promise<void>
  ask(query: string, variables?: object): Promise<Answered>
  /** The data of a query that has no errors. */
  data<T = Record<string, never>>(query: string, variables?: object): Promise<T>
  close(): Promise<void>
}

export async function startSearchSite(env: Readonly<Record<string, string>> = {}): Promise<SearchSite> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-search-'))
  const gateway = await startGatewayInside(folder, {
    SELVEDGE_INDEXING_ENABLED: 'false',
    SELVEDGE_RANKING_BACKEND: 'mdr',
    ...env,
  })
  const url = `http://127.0.0.1:${gateway.httpPort}`
  const ask = async (query: string, variables?: object): Promise<Answered> => {
    const body = JSON.stringify({ query, variables })
    const answer = await fetch(`${url}/search/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
    })
    return (await answer.json()) as Answered
  }
  const answers = async (): Promise<void> => {
    expect((await fetch(`${url}/search/version`)).status).toBe(200)
  }
  await vi.waitFor(answers, { interval: 20 })
  return {
    url,
    gateway,
    ask,
    async create(entities) {
      for (let at = 0; at < entities.length; at += 500) {
        const answer = await fetch(`${url}/ngsi-ld/v1/entityOperations/upsert`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify(entities.slice(at, at + 500)),
        })
        expect(`${answer.status} ${await answer.text()}`).toMatch(/^20[14] /)
      }
    },
    async data<T>(query: string, variables?: object) {
      const { data, errors } = await ask(query, variables)
      expect(errors).toBeUndefined()
      return data as T
    },
    async close() {
      await gateway.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
