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
  /** The value of each virtual sensor as text, by its name. */
  readonly estimates: ReadonlyMap<string, string>
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
    ...valuesIn(status === 200 ? (JSON.parse(text) as ObservationEntity[]) : []),
  }
}

/** A line for each virtual sensor that has its first value. */
export const newEstimates = (now: Snapshot, before: Snapshot | undefined): string[] =>
  [...now.estimates].flatMap(([name, value]) =>
    before?.estimates.has(name) === true ? [] : [`VIRTUAL SENSOR estimates ${name}: ${value}`],
  )

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

function valuesIn(entities: readonly ObservationEntity[]): Pick<Snapshot, 'latest' | 'estimates'> {
  const results = entities
    .map((entity) => ({ id: entity.id, ...(entity[sosa.hasSimpleResult] as Result | undefined) }))
    .filter(({ observedAt }) => observedAt !== undefined)
    .sort((a, b) => (a.observedAt! < b.observedAt! ? 1 : -1))
    .map(({ id, value, unitCode }) => ({ name: nameOf(id), text: withUnit(value, unitCode) }))
  return {
    latest: results.slice(0, latestShown).map(({ name, text }) => `${name} ${text}`),
    estimates: new Map(
      results.flatMap(({ name, text }) => (name.endsWith(' VS') ? [[name.slice(0, -3), text]] : [])),
    ),
  }
}

const nameOf = (id: string): string =>
  decodeURIComponent(id.replace(/^urn:ngsi-ld:StreamObservation:/, '')).replaceAll(':', ' ')
