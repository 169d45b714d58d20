/**
 * Observes one value of one attribute instance, from any source: stages it in its stream and matches
 * subscriptions.
 */
import type { Counter, Metrics } from '#base/register/metrics.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { ObservationVerdict, StreamOwner, Streams } from '#broker/state/streams.ts'
import type { LiveStream } from '#broker/state/unwritten.ts'
import type { Matcher } from '#broker/subscriptions/matcher.ts'
import type { Json } from '#contract/pipeline.ts'

export interface ObserverPorts {
  readonly streams: Streams
  readonly matcher: Matcher
  readonly metrics: Metrics
}

export function createObserver({ streams, matcher, metrics }: ObserverPorts) {
  const counters: Record<ObservationVerdict, Counter> = {
    new: metrics.counter('selvedge_observations_total'),
    late: metrics.counter('selvedge_observations_late_total'),
    duplicate: metrics.counter('selvedge_observations_duplicate_total'),
  }

  /** Observes a value of a given stream. A late one becomes current only with `replace`. */
  function observeStream(
    stage: Stage,
    stream: LiveStream,
    time: number,
    value: Json,
    replace: boolean,
  ): ObservationVerdict {
    const previous = stream.nextValue
    const verdict = streams.observe(stage, stream, time, value, replace)
    counters[verdict].value++
    if (verdict === 'new') matcher.observation(stage, stream, { time, value, previous })
    return verdict
  }

  return Object.freeze({
    observeStream,
    /**
     * Observes a value together with the attribute that contains its time. Returns false, and stages nothing,
     * if that attribute contains the time of another stream.
     */
    observeMirrored(
      stage: Stage,
      owner: StreamOwner,
      what: {
        readonly name: string
        readonly dataset: string
        readonly mirror: string
        readonly time: number
        readonly value: Json
      },
    ): boolean {
      const stream = streams.mirrored(stage, owner, what)
      if (stream !== undefined) observeStream(stage, stream, what.time, what.value, true)
      return stream !== undefined
    },
    /** Observes a value that a client wrote to an existing instance: it becomes current whatever its time. */
    observe(
      stage: Stage,
      owner: StreamOwner,
      name: string,
      dataset: string,
      time: number,
      value: Json,
    ): ObservationVerdict {
      return observeStream(stage, streams.open(stage, owner, name, dataset), time, value, true)
    },
  })
}

export type Observer = ReturnType<typeof createObserver>
