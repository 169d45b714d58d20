/**
 * Plans a virtual sensor: reads what is known of the broken sensor or of the place, finds its sources and
 * tests their histories.
 */
import { linksOf, numberOf, placeOf, propertyValue } from '#client/streams/stream-entities.ts'
import { qoi, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { findCandidates, labelOf, streamsOf } from '#plugins/virtual-sensors/candidates/sensor-search.ts'
import { deploymentId, isVirtual, replacementId } from '#plugins/virtual-sensors/entities/entity-names.ts'
import type { ValueBounds } from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'
import type { Deployment, Replacement, SourceChoices } from '#plugins/virtual-sensors/requests/parameters.ts'
import type { VirtualDocument } from '#plugins/virtual-sensors/state/virtual-sensor.ts'
import {
  failed,
  failures,
  type TrainingDataPorts,
  testCandidates,
} from '#plugins/virtual-sensors/training/training-data.ts'

/** A requested virtual sensor: in place of a broken sensor, or at a place without one. */
export type Wish =
  | { readonly id: string; readonly replacement: Replacement }
  | { readonly id: string; readonly deployment: Deployment }

export const wishOfReplacement = (replacement: Replacement): Wish => ({
  id: replacementId(replacement.sensorId),
  replacement,
})

export const wishOfDeployment = (deployment: Deployment): Wish => ({
  id: deploymentId(deployment.propertyId, deployment.position),
  deployment,
})

export function choicesOf(wish: Wish): SourceChoices {
  const { maxDistance, onlySameObservations, limitSourceSensors, updateInterval } =
    'replacement' in wish ? wish.replacement : wish.deployment
  return { maxDistance, onlySameObservations, limitSourceSensors, updateInterval }
}

/**
 * @throws ngsi-ld.not-found for an id that does not exist
 * @throws virtual-sensors.failed without metadata, sources or enough data
 * @throws peer errors if the broker does not answer
 */
export async function planned(
  ports: TrainingDataPorts,
  wish: Wish,
  { replaced, signal }: { readonly replaced: readonly string[]; readonly signal: AbortSignal },
): Promise<VirtualDocument> {
  const known =
    'replacement' in wish ? await brokenSensor(ports, wish.replacement) : await place(ports, wish.deployment)
  const choices = choicesOf(wish)
  // Without a history of the target, nothing shows how other phenomena relate to it.
  const onlySameObservations = choices.onlySameObservations || known.target === undefined
  const broken = new Set([...replaced, ...(known.target === undefined ? [] : [known.target])])
  const candidates = await findCandidates(ports.entities, {
    ...choices,
    ...known,
    onlySameObservations,
    broken,
  })
  if (candidates.length === 0) throw failed(failures['no-source'])
  const document = { ...known, choices, candidates }
  await testCandidates(ports, { ...requestOf(document), signal })
  return document
}

/** The training data of a virtual sensor. */
export const requestOf = ({
  targetObservation,
  targetStream,
  position,
  candidates,
  range,
}: VirtualDocument) => ({
  target:
    targetObservation === undefined || targetStream === undefined
      ? undefined
      : { stream: targetStream, observation: targetObservation },
  position,
  candidates,
  range,
})

type Known = Omit<VirtualDocument, 'choices' | 'candidates'>

async function brokenSensor({ entities }: TrainingDataPorts, { sensorId }: Replacement): Promise<Known> {
  const sensor = (await entities.byId([sensorId], sosa.Sensor)).get(sensorId)
  if (sensor === undefined) throw notFound(`there is no sensor ${sensorId}`)
  if (isVirtual(sensorId)) throw failed(`${sensorId} is a virtual sensor`)
  const missing = (what: string) => failed(`no metadata for broken sensor: ${sensorId} has no ${what}`)
  const [propertyId] = linksOf(sensor, sosa.observes)
  if (propertyId === undefined) throw missing('sosa:observes')
  const position = await positionOf({ entities }, sensor)
  if (position === undefined) throw missing('location')
  const property = (await entities.byId([propertyId], sosa.ObservableProperty)).get(propertyId)
  const stream = (await streamsOf(entities, [sensor])).get(sensorId)
  if (stream === undefined) throw missing('stream of observations')
  return {
    target: sensorId,
    targetObservation: stream.observation,
    targetStream: stream.id,
    propertyId,
    label: labelOf(property),
    unitCode: stream.unitCode,
    position,
    range: rangeOf(sensor),
  }
}

/** The place of a Sensor, else that of its Platform. */
async function positionOf(
  { entities }: Pick<TrainingDataPorts, 'entities'>,
  sensor: Entity,
): Promise<readonly number[] | undefined> {
  const own = placeOf(sensor)
  if (own !== undefined) return own
  const [platformId] = linksOf(sensor, sosa.isHostedBy)
  if (platformId === undefined) return undefined
  const platform = (await entities.byId([platformId], sosa.Platform)).get(platformId)
  return platform && placeOf(platform)
}

async function place({ entities }: TrainingDataPorts, { position, propertyId }: Deployment): Promise<Known> {
  const property = (await entities.byId([propertyId], sosa.ObservableProperty)).get(propertyId)
  if (property === undefined) throw notFound(`there is no observable property ${propertyId}`)
  return {
    target: undefined,
    targetObservation: undefined,
    targetStream: undefined,
    propertyId,
    label: labelOf(property),
    unitCode: undefined,
    position,
    range: {},
  }
}

function rangeOf(sensor: Entity): ValueBounds {
  const min = numberOf(propertyValue(sensor, qoi.min))
  const max = numberOf(propertyValue(sensor, qoi.max))
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) }
}

/** Whether both stand for the same virtual sensor with the same parameters. */
export const sameChoices = (a: SourceChoices, b: SourceChoices): boolean =>
  a.maxDistance === b.maxDistance &&
  a.onlySameObservations === b.onlySameObservations &&
  a.limitSourceSensors === b.limitSourceSensors &&
  a.updateInterval === b.updateInterval
