/** A virtual sensor as the creator has it in memory. */
import type { FollowedFacts } from '#client/subscriptions/broker-follower.ts'
import type { SourceCandidate } from '#plugins/virtual-sensors/candidates/sensor-search.ts'
import type { VirtualDescription } from '#plugins/virtual-sensors/entities/virtual-entities.ts'
import type {
  ValueBounds,
  VirtualSensorModel,
} from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'
import type { SourceChoices } from '#plugins/virtual-sensors/requests/parameters.ts'

/** The stored facts about a virtual sensor, besides its model. */
export interface VirtualDocument {
  readonly target: string | undefined
  /** Observation entity of the broken sensor. */
  readonly targetObservation: string | undefined
  readonly targetStream: string | undefined
  readonly propertyId: string
  readonly label: string | undefined
  readonly unitCode: string | undefined
  /** GeoJSON order. */
  readonly position: readonly number[]
  readonly choices: SourceChoices
  readonly candidates: readonly SourceCandidate[]
  readonly range: ValueBounds
  /** Why the training failed. */
  readonly error?: string | undefined
}

/** stopping: its entities are being deleted. */
export type VirtualState = 'training' | 'running' | 'failed' | 'stopping'

export interface VirtualSensor {
  readonly id: string
  state: VirtualState
  document: VirtualDocument
  model: VirtualSensorModel | undefined
  /** Share of the training that is done. */
  progress: number
  /** Trainings that failed in succession, in this process. */
  failures: number
  /** Why the latest prediction was not published. */
  trouble: string | undefined
  /** Its subscriptions at the broker. */
  facts: FollowedFacts
  followedState: string | undefined
  /** Aborted when it stops or is trained anew. */
  work: AbortController
}

/** Sources whose values the model uses, in its order; before it is trained, all candidates. */
export function sourcesOf({ model, document }: VirtualSensor): readonly SourceCandidate[] {
  if (model === undefined) return document.candidates
  const byId = new Map(document.candidates.map((one) => [one.id, one]))
  return model.sources.flatMap((id) => byId.get(id) ?? [])
}

export const descriptionOf = ({ id, document }: VirtualSensor): VirtualDescription => ({
  id,
  target: document.target,
  propertyId: document.propertyId,
  label: document.label,
  position: document.position,
  updateInterval: document.choices.updateInterval,
  sourceStreams: document.candidates.map(({ stream }) => stream),
})
