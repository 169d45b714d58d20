/** Detectors of the evaluation that are fed side by side, with the opinions of a model if there is one. */
import type { Judgement, StreamDetector, StreamSample } from '#plugins/faults/detection/stream-detector.ts'
import { type Advice, type FaultModel, noteJudgement, opinionsOf } from './fault-opinions.ts'

/** A detector with what a model's opinions depend on, if there is a model. */
export interface Follower {
  readonly detector: StreamDetector
  readonly advice: Advice | undefined
}

interface Feeding {
  /** A sample for each follower. */
  readonly samples: readonly StreamSample[]
  readonly model: FaultModel | undefined
  readonly slotMs: number
}

/** Feeds each follower its sample; in a slot without a value only time passes. */
export async function judged(
  followers: readonly Follower[],
  { samples, model, slotMs }: Feeding,
): Promise<readonly (Judgement | undefined)[]> {
  const opinions =
    model === undefined
      ? []
      : await opinionsOf(
          model,
          followers.map(({ advice }, i) => ({ advice: advice!, sample: samples[i]! })),
          slotMs,
        )
  return followers.map(({ detector, advice }, i) => {
    const opinion = opinions[i]
    const sample = opinion === undefined ? samples[i]! : { ...samples[i]!, opinion }
    const judgement = Number.isNaN(sample.value)
      ? detector.advance({ time: sample.time })
      : detector.take(sample)
    if (advice !== undefined && judgement !== undefined) noteJudgement(advice, judgement)
    return judgement
  })
}
