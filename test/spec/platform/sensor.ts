/** A sensor as platform clients write it, and their requests, as in the specification. */
import type { HttpClient, Reply } from '#test/kit/http-gateway.ts'

const core = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld'
export const sosa = 'http://www.w3.org/ns/sosa/'
export const qoi = 'https://w3id.org/iot/qoi#'
const context = [core, { sosa, qoi }]
export const sensorType = `${sosa}Sensor`
export const entitiesPath = '/ngsi-ld/v1/entities'

/** With prefixed names, which its @context resolves. */
export const sensor = (id: string): Record<string, unknown> => ({
  id,
  type: 'sosa:Sensor',
  location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [13.37, 52.52] } },
  'sosa:isHostedBy': { type: 'Relationship', object: 'urn:ngsi-ld:Platform:1' },
  'qoi:updateinterval': {
    type: 'Property',
    value: 60,
    'qoi:unit': { type: 'Property', value: 'seconds' },
  },
  'qoi:min': { type: 'Property', value: -10 },
  'qoi:max': { type: 'Property', value: 40 },
  '@context': context,
})

/** Attributes of an entity as a body for its attrs: with @context, without id and type. */
export function attributesOf(entity: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { id: _id, type: _type, ...attributes } = entity
  return attributes
}

const ld = { 'Content-Type': 'application/ld+json' }

export function clientOf(client: HttpClient) {
  return {
    create: (body: unknown): Promise<Reply> => client.ask('POST', `${entitiesPath}/`, { body, headers: ld }),
    update: (id: string, body: unknown): Promise<Reply> =>
      client.ask('PATCH', `${entitiesPath}/${id}/attrs`, { body, headers: ld }),
    append: (id: string, body: unknown): Promise<Reply> =>
      client.ask('POST', `${entitiesPath}/${id}/attrs/`, { body, headers: ld }),
    remove: (id: string): Promise<Reply> => client.ask('DELETE', `${entitiesPath}/${id}`),
    retrieve: (id: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
      client.get(`${entitiesPath}/${id}`, headers),
    query: (type: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
      client.get(`${entitiesPath}?type=${encodeURIComponent(type)}`, headers),
  }
}
