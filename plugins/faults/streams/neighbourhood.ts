/**
 * Estimates the value of a stream from its neighbours: streams of the same property label near it. The usual
 * difference from each neighbour, and its variance, are learned from samples without a fault. Faulty, stopped
 * and inferred streams, and those whose QoI is bad, give no estimate.
 */
import { createNeighbours } from '#client/streams/neighbours.ts'
import type { NeighbourEstimate } from '#plugins/faults/rules/observed.ts'
import type { FaultStream, NeighbourDifference } from './fault-stream.ts'

export interface StreamNeighbours {
  /** Takes the label and place of a stream from its metadata. */
  describe(stream: FaultStream): void
  delete(stream: FaultStream): void
  /** The estimate for a time of the stream, ms; undefined without a neighbour that is known well enough. */
  estimate(stream: FaultStream, time: number): NeighbourEstimate | undefined
  /** Learns from the newest sample of a stream, which has no fault. */
  learn(stream: FaultStream): void
}

/** Samples after which the difference from a neighbour is known. */
const samplesMin = 30
/** Least weight of a new difference. */
const weightMin = 0.01
/** Age of a neighbour's value in intervals of the slower of both. */
const ageIntervals = 3
/** Interval of streams that declare none, ms. */
const usualIntervalMs = 600_000
/** Equal values from which a neighbour does not vary. */
const equalMax = 4
/** Standard deviations by which neighbours that agree may differ. */
const deviationsMax = 3
const leastVariance = 1e-9

export function createNeighbourhood({ radiusMeters }: { readonly radiusMeters: number }): StreamNeighbours {
  const neighbours = createNeighbours<FaultStream>(
    radiusMeters,
    ({ record, metadata }) => record.last !== undefined && !metadata.isInferred,
  )

  /** Neighbours whose newest value is of about this time, and which have no fault and a good QoI. */
  const near = (stream: FaultStream, time: number): readonly FaultStream[] =>
    neighbours.of(stream).filter(({ record: { state, last }, metadata, isDoubtful }) => {
      if (
        last === undefined ||
        isDoubtful ||
        state === 'fault' ||
        state === 'recovering' ||
        state === 'stopped'
      )
        return false
      const interval = Math.max(stream.metadata.intervalMs ?? 0, metadata.intervalMs ?? 0) || usualIntervalMs
      return Math.abs(time - last.time) <= ageIntervals * interval
    })

  return Object.freeze({
    describe(stream) {
      const { label, place } = stream.metadata
      if (label === undefined || place === undefined) neighbours.delete(stream)
      else neighbours.put(stream, label, place)
    },
    delete: neighbours.delete,
    estimate(stream, time) {
      const { differences } = stream.record
      const known = near(stream, time).flatMap((one) => {
        const difference = differences[one.id]
        return difference === undefined || difference.count < samplesMin ? [] : [{ one, difference }]
      })
      if (known.length === 0) return undefined
      const estimates = known.map(({ one, difference: { mean, variance } }) => ({
        value: one.record.last!.value + mean,
        variance: variance + leastVariance,
      }))
      const weight = estimates.reduce((sum, { variance }) => sum + 1 / variance, 0)
      return {
        value: estimates.reduce((sum, { value, variance }) => sum + value / variance, 0) / weight,
        // The errors of neighbours are those of one place and time, so several do not reduce it.
        error: Math.sqrt(estimates.length / weight),
        isVarying: known.some(({ one }) => one.record.equalValues < equalMax),
        areAgreeing: estimates.length > 1 && doAgree(estimates),
      }
    },
    learn(stream) {
      const { last, differences } = stream.record
      if (last === undefined) return
      const found = near(stream, last.time)
      for (const one of found) {
        const difference = differences[one.id] ?? { count: 0, mean: 0, variance: 0 }
        differences[one.id] = difference
        learnDifference(difference, last.value - one.record.last!.value)
      }
      if (Object.keys(differences).length <= found.length) return
      const all = new Set(neighbours.of(stream).map(({ id }) => id))
      for (const id of Object.keys(differences)) if (!all.has(id)) delete differences[id]
    },
  } satisfies StreamNeighbours)
}

function learnDifference(difference: NeighbourDifference, value: number): void {
  difference.count++
  const weight = Math.max(1 / difference.count, weightMin)
  const error = value - difference.mean
  difference.mean += weight * error
  difference.variance = (1 - weight) * (difference.variance + weight * error * error)
}

const doAgree = (estimates: readonly { readonly value: number; readonly variance: number }[]): boolean =>
  estimates.every((a) =>
    estimates.every((b) => Math.abs(a.value - b.value) <= deviationsMax * Math.sqrt(a.variance + b.variance)),
  )
