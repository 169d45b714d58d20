/**
 * Observing: one value of one attribute instance, by whatever door it came. Stages it in its stream and lets the
 * matcher see it.
 */
import type { Counter, Metrics } from '#base/register/metrics.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { StreamOwner, Streams, Verdict } from '#broker/state/streams.ts'
import type { LiveStream } from '#broker/state/unwritten.ts'
import type { Matcher } from '#broker/subscriptions/matcher.ts'
import type { Json } from '#contract/pipeline.ts'

export interface ObserverPorts {
  readonly streams: Streams
  readonly matcher: Matcher
  readonly metrics: Metrics
}

export function createObserver({ streams, matcher, metrics }: ObserverPorts) {
  const counters: Record<Verdict, Counter> = {
    new: metrics.counter('selvedge_observations_total'),
    late: metrics.counter('selvedge_observations_late_total'),
    duplicate: metrics.counter('selvedge_observations_duplicate_total'),
  }

  /** A value of a known stream. A late one becomes current only when `replace` says so. */
  function observeStream(
    stage: Stage,
    stream: LiveStream,
    time: number,
    value: Json,
    replace: boolean,
  ): Verdict {
    const previous = stream.nextValue
    const verdict = streams.observe(stage, stream, time, value, replace)
    counters[verdict].value++
    if (verdict === 'new') matcher.observation(stage, stream, { time, value, previous })
    return verdict
  }

  return Object.freeze({
    observeStream,
    /**
     * The same with the attribute that says when. False where that one says when another was observed, and nothing is
     * staged then.
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
    /** A value written by a client to an existing instance: it becomes current whatever its time. */
    observe(
      stage: Stage,
      owner: StreamOwner,
      name: string,
      dataset: string,
      time: number,
      value: Json,
    ): Verdict {
      return observeStream(stage, streams.open(stage, owner, name, dataset), time, value, true)
    },
  })
}

export type Observer = ReturnType<typeof createObserver>
