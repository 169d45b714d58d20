/**
 * Reads at the broker which streams a subscription selects, and what describes them. Conditions on values
 * (`q`, `geoQ`, `scopeQ`) do not restrict the streams: those of a failed sensor can no longer become true.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import { itemsOf, listIn } from '#client/requests/broker-messages.ts'
import { readByIds } from '#client/requests/broker-reading.ts'
import type { BrokerClient, RequestTrouble } from '#client/requests/broker-requests.ts'
import { linksOf, placeOf, propertyValue, sensorOf } from '#client/streams/stream-entities.ts'
import { faultTerms, iotStream, rdfsLabel, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { isObject, type JsonObject, listOf, own, textsOf } from '#ngsi-ld/values/json.ts'
import type { StreamFacts } from './failure-notices.ts'

/** A stream that exists, and what describes it. */
export interface DescribedStream {
  readonly entity: Entity
  readonly sensor: string
  readonly observes: string
  readonly facts: StreamFacts
}

/** Stream ids that a subscription selects, with the selected observation entity; '' without one. */
export type ObservedStreams = ReadonlyMap<string, string>

export type StreamReading = ReturnType<typeof createStreamReading>

export function createStreamReading(client: BrokerClient, clock: Clock) {
  /** Those that exist, by id. @throws peer.unavailable, peer.refused */
  async function byId(ids: Iterable<string>, types: readonly string[]): Promise<ReadonlyMap<string, Entity>> {
    const known = [...new Set(ids)].filter((id) => id !== '')
    if (known.length === 0) return new Map()
    const found = await readByIds(known, types, client)
    if ('trouble' in found) throw errorOf(found.trouble)
    const { entities } = itemsOf(found.value, clock.now())
    return new Map(entities.map((entity) => [entity.id, entity]))
  }

  const errorOf = ({ kind, reason }: RequestTrouble): GatewayError =>
    new GatewayError(kind === 'down' ? 'peer.unavailable' : 'peer.refused', `${client.address}: ${reason}`)

  /** Ids that an entity selector without an id selects, up to the ceiling. */
  async function idsOf(selector: JsonObject, context: JsonObject): Promise<readonly string[]> {
    const ids: string[] = []
    const page = limits.orchestratorSelectedPage.value
    while (ids.length < limits.orchestratorSelectedMax.value) {
      const answer = await client.request(
        {
          method: 'POST',
          path: `/ngsi-ld/v1/entityOperations/query?limit=${page}&offset=${ids.length}`,
          headers: { 'Content-Type': 'application/ld+json', Accept: 'application/json' },
          body: JSON.stringify({ type: 'Query', entities: [selector], ...context }),
        },
        [200],
      )
      if ('trouble' in answer) throw errorOf(answer.trouble)
      const items = listIn(answer.value.text) ?? []
      ids.push(...textsOf(items.map((item) => own(item as JsonObject, 'id') ?? null)))
      if (items.length < page) break
    }
    return ids.slice(0, limits.orchestratorSelectedMax.value)
  }

  const types = [iotStream.StreamObservation, iotStream.IotStream]

  return Object.freeze({
    byId,
    /** Ids of the observation entities that exist. @throws peer.unavailable, peer.refused */
    observations: async (ids: Iterable<string>) => [
      ...(await byId(ids, [iotStream.StreamObservation])).keys(),
    ],
    /** @param body with its @context. @throws peer.unavailable, peer.refused */
    async selected(body: JsonObject, context: JsonObject): Promise<ObservedStreams> {
      const ids = new Set<string>()
      for (const selector of listOf(own(body, 'entities') ?? []).filter(isObject)) {
        const { id, ...rest } = selector
        const given = id === undefined ? await idsOf(rest, context) : textsOf(id ?? null)
        for (const one of given) ids.add(one)
      }
      const entities = await byId([...ids].slice(0, limits.orchestratorSelectedMax.value), types)
      const streams = new Map<string, string>()
      for (const entity of entities.values()) {
        const isStream = listOf(entity.type).includes(iotStream.IotStream)
        const [stream] = isStream ? [entity.id] : linksOf(entity, iotStream.belongsTo)
        if (stream !== undefined && (!isStream || !streams.has(stream)))
          streams.set(stream, isStream ? '' : entity.id)
      }
      return streams
    },
    /** Those that exist. @throws peer.unavailable, peer.refused */
    async describe(ids: Iterable<string>): Promise<ReadonlyMap<string, DescribedStream>> {
      const streams = await byId(ids, [iotStream.IotStream])
      const sensors = await byId(
        [...streams.values()].flatMap((one) => sensorOf(one) ?? []),
        [sosa.Sensor],
      )
      const describing = await byId(
        [...sensors.values()].flatMap((one) => [
          ...linksOf(one, sosa.observes).slice(0, 1),
          ...linksOf(one, sosa.isHostedBy).slice(0, 1),
        ]),
        [sosa.ObservableProperty, sosa.Platform],
      )
      return new Map(
        [...streams].map(([id, entity]) => {
          const sensor = sensors.get(sensorOf(entity) ?? '')
          const observes = (sensor && linksOf(sensor, sosa.observes)[0]) ?? ''
          const property = describing.get(observes)
          const platform = describing.get((sensor && linksOf(sensor, sosa.isHostedBy)[0]) ?? '')
          const label = property && propertyValue(property, rdfsLabel)
          const facts = {
            property: observes === '' ? undefined : observes,
            label: typeof label === 'string' && label !== 'NA' && label.trim() !== '' ? label : undefined,
            place: [sensor, entity, platform].map((one) => one && placeOf(one)).find(Boolean),
          }
          return [id, { entity, sensor: sensorOf(entity) ?? '', observes, facts }] as const
        }),
      )
    },
    /** The first observation entity of a stream; undefined if it has none, or it cannot be read. */
    async observationOf(stream: string): Promise<string | undefined> {
      const query = new URLSearchParams({
        type: iotStream.StreamObservation,
        q: `${iotStream.belongsTo}=="${stream.replaceAll(/["\\]/g, '')}"`,
        limit: '1',
      })
      const path = `/ngsi-ld/v1/entities?${query}`
      const headers = { Accept: 'application/json' }
      const answer = await client.request({ method: 'GET', path, headers }, [200])
      const items = 'value' in answer ? (listIn(answer.value.text) ?? []) : []
      return itemsOf(items, clock.now()).entities[0]?.id
    },
    /** The newest open fault of a stream, a definite one if possible; undefined if it cannot be read. */
    async faultOf(stream: string): Promise<{ readonly class: string; readonly detail: string } | undefined> {
      const q = `${faultTerms.stream}=="${stream}";!${faultTerms.end}`
      const path = `/ngsi-ld/v1/entities?type=${encodeURIComponent(faultTerms.Fault)}&q=${encodeURIComponent(q)}&limit=20`
      const answer = await client.request(
        { method: 'GET', path, headers: { Accept: 'application/json' } },
        [200],
      )
      const items = 'value' in answer ? (listIn(answer.value.text) ?? []) : []
      const text = (fault: Entity, name: string): string => {
        const value = propertyValue(fault, name)
        return typeof value === 'string' ? value : ''
      }
      const isDefinite = (fault: Entity): boolean => text(fault, faultTerms.kind) === 'definite'
      const beginOf = ({ id }: Entity): number => Number(id.slice(id.lastIndexOf(':') + 1)) || 0
      const [fault] = itemsOf(items, clock.now()).entities.toSorted(
        (a, b) => Number(isDefinite(b)) - Number(isDefinite(a)) || beginOf(b) - beginOf(a),
      )
      if (fault === undefined) return undefined
      const name = text(fault, faultTerms.class)
      return { class: name, detail: `${name} (${text(fault, faultTerms.method)})` }
    },
  })
}
