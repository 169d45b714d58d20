/**
 * Finds streams that can stand in for a failed one: of the same property label, within a distance, ordered by
 * the ranking. The virtual sensor that replaces the failed sensor comes first, once it has a value.
 */
import { limits } from '#base/limits/limits.ts'
import { itemsOf, listIn } from '#client/requests/broker-messages.ts'
import { linksOf, numberOf, propertyValue } from '#client/streams/stream-entities.ts'
import type { BrokerPort } from '#contract'
import { faultTerms, iotStream, sosa } from '#contract/vocabulary.ts'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import type { Alternative } from './failure-notices.ts'
import type { WatchedStream } from './failure-statements.ts'
import type { DescribedStream, StreamReading } from './stream-reading.ts'

export interface AlternativesPorts {
  readonly reading: StreamReading
  readonly ranking: BrokerPort
  readonly now: () => number
}

/** Distance in which alternatives are searched, metres: that of neighbours. */
const maxDistance = 20_000
const rankScoreName = 'http://iotcrawler.eu/rankScore'
/** A stream one kilometre away has half the proximity. */
const weights = '@proximity:0.5,@availability:0.25,qoi:hasQuality.qoi:plausibility:0.25'
const observes = 'iot-stream:generatedBy.sosa:observes'
const suffix = ':VS'

export const isVirtualSensor = (sensor: string): boolean => sensor.endsWith(suffix)
/** The sensor that a virtual one replaces. */
export const replacedSensor = (virtual: string): string => virtual.slice(0, -suffix.length)

export interface FoundAlternatives {
  readonly alternatives: readonly Alternative[]
  /** Whether the first one is the virtual sensor of the failed sensor. */
  readonly isReplaced: boolean
  /** Whether the ranking answered, from an index that was built. */
  readonly isComplete: boolean
}

/** Candidates of the ranking. */
interface RankedStreams {
  /** By id, best first. */
  readonly scores: ReadonlyMap<string, number>
  readonly isComplete: boolean
}

const none: RankedStreams = { scores: new Map(), isComplete: true }

/** Whether an index answered that is being built, and lacks entities. */
const isBuilding = (headers: Readonly<Record<string, string>>): boolean =>
  headers['selvedge-answered-by'] === 'index' && headers['selvedge-index-position'] === undefined

export type Alternatives = ReturnType<typeof createAlternatives>

export function createAlternatives({ reading, ranking, now }: AlternativesPorts) {
  let failure: string | undefined
  let failedAt = -Infinity

  async function ranked(query: string): Promise<RankedStreams> {
    const answer = await ranking.exchange({
      method: 'GET',
      path: `/ngsi-ld/v1/entities?${query}`,
      timeoutMs: limits.orchestratorSearchMs.value,
    })
    const items = 'status' in answer && answer.status === 200 ? listIn(answer.text) : undefined
    failure =
      items === undefined
        ? `${'status' in answer ? `${answer.status} ${answer.text.slice(0, 200)}` : answer.reason}`
        : undefined
    if (items === undefined) {
      failedAt = now()
      return { ...none, isComplete: false }
    }
    return {
      scores: new Map(
        itemsOf(items, now()).entities.map((one) => [
          one.id,
          numberOf(propertyValue(one, rankScoreName)) ?? 0,
        ]),
      ),
      isComplete: !('headers' in answer && isBuilding(answer.headers)),
    }
  }

  /** The stream of the virtual sensor of a sensor, if it has a value. */
  async function replacementOf(sensor: string): Promise<string | undefined> {
    const virtual = (await reading.byId([`${sensor}${suffix}`], [sosa.Sensor])).get(`${sensor}${suffix}`)
    const [observation = ''] = virtual ? linksOf(virtual, sosa.madeObservation) : []
    const entity = (await reading.byId([observation], [iotStream.StreamObservation])).get(observation)
    if (entity === undefined || numberOf(propertyValue(entity, sosa.hasSimpleResult)) === undefined)
      return undefined
    return linksOf(entity, iotStream.belongsTo)[0]
  }

  return Object.freeze({
    /** At most `limits.orchestratorAlternativesMax`. @throws peer.unavailable, peer.refused */
    async of({ stream, sensor, facts }: WatchedStream): Promise<FoundAlternatives> {
      const query = queryOf(facts)
      const { scores, isComplete } = query === undefined ? none : await ranked(query)
      const replacement = sensor === '' || isVirtualSensor(sensor) ? undefined : await replacementOf(sensor)
      const ids = [...(replacement === undefined ? [] : [replacement]), ...scores.keys()]
      const described = await reading.describe(ids)
      const usable = [...new Set(ids)].flatMap((id) => {
        const one = described.get(id)
        // Its virtual sensor has no value yet.
        const isEarly = one?.sensor === `${sensor}${suffix}` && id !== replacement
        return id === stream || one === undefined || !isUsable(one) || isEarly ? [] : [{ id, one }]
      })
      return {
        isComplete,
        isReplaced: replacement !== undefined && usable[0]?.id === replacement,
        alternatives: usable.slice(0, limits.orchestratorAlternativesMax.value).map(({ id, one }) => ({
          stream: id,
          sensor: one.sensor,
          observedProperty: one.observes,
          distance: distanceBetween(facts.place, one.facts.place),
          rankScore: scores.get(id) ?? null,
          isVirtual: isVirtualSensor(one.sensor),
        })),
      }
    },
    /** Whether a search failed a moment ago: then one more for each waiting stream would delay others. */
    isFailing: () => now() - failedAt < limits.orchestratorRecheckMs.value,
    /** Why the last search failed. */
    failure: () => failure,
  })
}

const unusable: ReadonlySet<unknown> = new Set(['fault', 'recovering'])

const isUsable = ({ entity, sensor }: DescribedStream): boolean =>
  sensor !== '' && !unusable.has(propertyValue(entity, faultTerms.state))

/** The ranking's parameters; undefined for a stream whose property is unknown. */
function queryOf({ property, label, place }: WatchedStream['facts']): string | undefined {
  const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '')}"`
  const conditions =
    label === undefined
      ? property === undefined
        ? []
        : [`${observes}==${quoted(property)}`]
      : spellingsOf(label).map((one) => `${observes}.label==${quoted(one)}`)
  if (conditions.length === 0) return undefined
  const near = place && {
    georel: `near;maxDistance==${maxDistance}`,
    geometry: 'Point',
    coordinates: JSON.stringify(place),
  }
  return new URLSearchParams({
    type: iotStream.IotStream,
    q: conditions.join('|'),
    ...near,
    weights: near === undefined ? weights.replace(/@proximity:[^,]*,/, '') : weights,
    limit: `${limits.orchestratorCandidatesMax.value}`,
  }).toString()
}

/** Labels that differ only in case name the same property. */
function spellingsOf(label: string): readonly string[] {
  const lower = label.trim().toLowerCase()
  const capitalized = lower.slice(0, 1).toUpperCase() + lower.slice(1)
  return [...new Set([label, lower, capitalized, lower.toUpperCase()])]
}

/** Metres, whole. */
function distanceBetween(
  from: readonly [number, number] | undefined,
  to: readonly [number, number] | undefined,
): number | null {
  return from === undefined || to === undefined ? null : Math.round(distanceMeters([...from], [...to]))
}
