/**
 * What arrives, as one live line: asked from the gateway once a second by its public paths, so that the line shows
 * what any client would see.
 */
import type { Clock } from '#base/time/clock.ts'
import { ask, metricValues } from '#cli/gateway/gateway-client.ts'
import { iotStream, sosa } from '#intake/vocabulary.ts'
import { withUnit } from './demo-units.ts'

/** Two looks make a rate. */
export interface Look {
  readonly at: number
  readonly observations: number
  readonly entities: number
  /** The newest values, in the words of a person. */
  readonly latest: readonly string[]
}

const latestShown = 3

/** @throws cli.no-answer when the gateway does not answer. */
export async function lookAt(httpUrl: string, clock: Clock): Promise<Look> {
  const metrics = metricValues((await ask(`${httpUrl}/metrics`)).text)
  const type = encodeURIComponent(iotStream.StreamObservation)
  const { status, text } = await ask(`${httpUrl}/ngsi-ld/v1/entities?type=${type}&limit=100`)
  return {
    at: clock.monotonic(),
    observations: metrics.get('selvedge_observations_total') ?? 0,
    entities: metrics.get('selvedge_entities') ?? 0,
    latest: status === 200 ? latestValues(JSON.parse(text) as ObservationEntity[]) : [],
  }
}

export function lookLine(look: Look, before: Look | undefined): string {
  const seconds = before === undefined ? 0 : (look.at - before.at) / 1000
  const rate = before === undefined || seconds <= 0 ? 0 : (look.observations - before.observations) / seconds
  return [
    `${rate.toFixed(1)} observations/s`,
    `${look.observations} in all`,
    `${look.entities} entities`,
    ...look.latest,
  ].join(' | ')
}

interface ObservationEntity {
  readonly id: string
  readonly [attribute: string]: unknown
}

interface Result {
  readonly value?: unknown
  readonly unitCode?: string
  readonly observedAt?: string
}

function latestValues(entities: readonly ObservationEntity[]): string[] {
  const results = entities.map((entity) => ({
    id: entity.id,
    ...(entity[sosa.hasSimpleResult] as Result | undefined),
  }))
  return results
    .filter(({ observedAt }) => observedAt !== undefined)
    .sort((a, b) => (a.observedAt! < b.observedAt! ? 1 : -1))
    .slice(0, latestShown)
    .map(({ id, value, unitCode }) => {
      const name = decodeURIComponent(id.replace(/^urn:ngsi-ld:StreamObservation:/, '')).replaceAll(':', ' ')
      return `${name} ${withUnit(value, unitCode)}`
    })
}
