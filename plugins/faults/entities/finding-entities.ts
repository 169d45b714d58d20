/**
 * Findings as NGSI-LD with canonical names: Fault entities, the state of a stream, and the verdict on an
 * observation. Pure.
 */
import { faultTerms, fd, iotStream } from '#contract/vocabulary.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { Estimate } from '#plugins/faults/detection/recovery.ts'
import type { StreamState } from '#plugins/faults/detection/state-machine.ts'
import type { FaultFinding } from '#plugins/faults/rules/finding.ts'

type Fragment = JsonObject & { readonly id: string }

const streamIds = 'urn:ngsi-ld:IotStream:'

/** `urn:ngsi-ld:Fault:<device>:<field>:<begin in ms>`; a stream with another id is named by that id. */
export const faultId = (streamId: string, begin: number): string =>
  `urn:ngsi-ld:Fault:${streamId.startsWith(streamIds) ? streamId.slice(streamIds.length) : streamId}:${begin}`

export interface FaultPlace {
  readonly id: string
  readonly stream: string
  readonly sensor: string | undefined
  /** observedAt of what is written, ms: the time of the sample that led to the finding, or later. */
  readonly time: number
}

/** A finding that begins, or becomes definite. */
export function begunFault(finding: FaultFinding, { id, stream, sensor, time }: FaultPlace): Fragment {
  return {
    id,
    type: faultTerms.Fault,
    [faultTerms.stream]: { type: 'Relationship', object: stream },
    ...(sensor === undefined ? {} : { [faultTerms.sensor]: { type: 'Relationship', object: sensor } }),
    [faultTerms.class]: property(finding.class),
    [faultTerms.kind]: property(finding.kind, time),
    [faultTerms.begin]: timeOf(finding.begin),
    ...judged(finding, time),
  }
}

/** A finding that ended. */
export const endedFault = (finding: Pick<FaultFinding, 'end'>, id: string, time: number): Fragment => ({
  id,
  type: faultTerms.Fault,
  [faultTerms.end]: timeOf(finding.end ?? time),
})

const judged = ({ likelihood, method }: FaultFinding, time: number): JsonObject => ({
  [faultTerms.likelihood]: property(likelihood, time),
  [faultTerms.method]: property(method, time),
})

export const stateFragment = (
  stream: { readonly id: string; readonly types: readonly string[] },
  state: StreamState | 'stopped',
  time: number,
): Fragment => ({
  id: stream.id,
  // Some brokers read no list of one type.
  type: stream.types.length === 1 ? stream.types[0]! : [...stream.types],
  [faultTerms.state]: property(state, time),
})

export interface Verdict {
  readonly verdict: 'ok' | 'faulty'
  /** Names what decided it. */
  readonly method: string | undefined
  readonly estimate: Estimate | undefined
}

/** The verdict of an observation. With `ok` the estimate is N/A, as the original wrote it. */
export const verdictFragment = (
  id: string,
  { verdict, method, estimate }: Verdict,
  time: number,
): Fragment => ({
  id,
  type: iotStream.StreamObservation,
  [fd.hasVerdict]: {
    ...property(verdict, time),
    ...(method === undefined ? {} : { [faultTerms.method]: property(method) }),
  },
  ...(verdict === 'ok' ? { [fd.hasEstimatedResult]: property('N/A', time) } : estimateOf(estimate, time)),
})

/** A further estimate while the verdict lasts. */
export const estimateFragment = (id: string, estimate: Estimate, time: number): Fragment => ({
  id,
  type: iotStream.StreamObservation,
  ...estimateOf(estimate, time),
})

const estimateOf = (estimate: Estimate | undefined, time: number): JsonObject =>
  estimate === undefined
    ? {}
    : {
        [fd.hasEstimatedResult]: {
          ...property(estimate.value, time),
          [faultTerms.error]: property(estimate.error),
          [faultTerms.method]: property(estimate.method),
        },
      }

const property = (value: string | number, time?: number): JsonObject => ({
  type: 'Property',
  value,
  ...(time === undefined ? {} : { observedAt: msToDateTime(time) }),
})

const timeOf = (ms: number): JsonObject => ({
  type: 'Property',
  value: { '@type': 'DateTime', '@value': msToDateTime(ms) },
})
