/**
 * Whether V8 marks its old generation, which takes about 100 ms in steps beside other work. V8 collects no
 * young garbage meanwhile, and what is referenced at any time of it survives: up to 25 MB of garbage that
 * long work creates, most of which then needs the next collection.
 */
import {
  constants,
  type NodeGCPerformanceDetail,
  type PerformanceEntry,
  PerformanceObserver,
} from 'node:perf_hooks'
import { GCProfiler } from 'node:v8'
import { limits } from '#base/limits/limits.ts'
import { residentBytes } from './process-memory.ts'

let marking = false

/**
 * Observes the collections of this thread. Returns a function that stops it.
 * @param onCollection Called after each collection that V8 started by itself, up to two turns later.
 */
export function observeCollections(onCollection: () => void): () => void {
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as (PerformanceEntry & {
      readonly detail: NodeGCPerformanceDetail
    })[]) {
      const { kind, flags = 0 } = entry.detail
      if (kind === constants.NODE_PERFORMANCE_GC_INCREMENTAL) marking = true
      else if (kind === constants.NODE_PERFORMANCE_GC_MAJOR) marking = false
      const isEnd = kind !== constants.NODE_PERFORMANCE_GC_INCREMENTAL
      if (isEnd && (flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) === 0) onCollection()
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  return () => {
    observer.disconnect()
    marking = false
  }
}

/** Whether V8 marks. It reports the start within two turns of the event loop. */
export const isMarking = (): boolean => marking

/**
 * Ended profilers that survived a collection or a part of a marking. Until V8 frees such a profiler, which
 * may take several markings, it still stores 4 kB for each collection.
 */
let heldProfilers = 0
const heldProfilersMax = 4
const held = new FinalizationRegistry(() => {
  heldProfilers--
})

/**
 * Records what V8 collects. The returned function ends that and returns whether V8 marks at this moment. Call
 * it two turns later, when `isMarking` contains what was before. If V8 is already marking, or with too many
 * held profilers, it only returns `isMarking`.
 */
export function recordMarking(): () => boolean {
  if (marking || heldProfilers >= heldProfilersMax) return isMarking
  const profiler = new GCProfiler()
  profiler.start()
  return () => {
    const kinds = profiler.stop().statistics.map(({ gcType }) => gcType)
    if (kinds.length > 0 || marking) {
      heldProfilers++
      held.register(profiler, undefined)
    }
    const last = kinds.findLast((kind) => kind === 'IncrementalMarking' || kind === 'MarkSweepCompact')
    return last === undefined ? marking : last === 'IncrementalMarking'
  }
}

/** Whether V8 marks while more than `memoryPressureBytes` is resident. Long work should then create less. */
export const isMarkingShortOfMemory = (): boolean =>
  marking && residentBytes() >= limits.memoryPressureBytes.value
