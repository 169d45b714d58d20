/**
 * The live status line of the demo, read from the public paths of the gateway once a second.
 */
import type { Clock } from '#base/time/clock.ts'
import { metricValues, sendRequest } from '#cli/gateway/gateway-client.ts'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import { withUnit } from './demo-units.ts'

/** The state at one time; two of them give a rate. */
export interface Snapshot {
  readonly at: number
  readonly observations: number
  readonly entities: number
  /** The newest values as text. */
  readonly latest: readonly string[]
}

const latestShown = 3

/** @throws cli.no-answer if the gateway does not respond. */
export async function readSnapshot(httpUrl: string, clock: Clock): Promise<Snapshot> {
  const metrics = metricValues((await sendRequest(`${httpUrl}/metrics`)).text)
  const type = encodeURIComponent(iotStream.StreamObservation)
  const { status, text } = await sendRequest(`${httpUrl}/ngsi-ld/v1/entities?type=${type}&limit=100`)
  return {
    at: clock.monotonic(),
    observations: metrics.get('selvedge_observations_total') ?? 0,
    entities: metrics.get('selvedge_entities') ?? 0,
    latest: status === 200 ? latestValues(JSON.parse(text) as ObservationEntity[]) : [],
  }
}

export function statusLine(now: Snapshot, before: Snapshot | undefined): string {
  const seconds = before === undefined ? 0 : (now.at - before.at) / 1000
  const rate = before === undefined || seconds <= 0 ? 0 : (now.observations - before.observations) / seconds
  return [
    `${rate.toFixed(1)} observations/s`,
    `${now.observations} in all`,
    `${now.entities} entities`,
    ...now.latest,
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
