/**
 * Returns memory to the system after a load. V8 keeps garbage until it allocates again, and pools the pages
 * of a heap that was larger before. Only a last-resort collection releases them: 110 of 270 MB after batches
 * of 10,000 entities. Small boards need that memory for other processes.
 *
 * 1. If the event loop is idle and resident memory is well above the last baseline: a last-resort collection.
 * 2. Under a light load: only free memory outside the heap is returned, which takes milliseconds.
 * 3. Under a higher load: nothing.
 */
import { performance } from 'node:perf_hooks'
import { limits } from '#base/limits/limits.ts'
import { residentBytes } from './process-memory.ts'

/** An event loop that is busy for at most this share of its time counts as idle. */
const quietShare = 0.05
/** Above this share nothing is returned. */
const lightShare = 0.5
const checkMs = 1000
/** Checks between two collections, since a collection stops the process for a moment; fewer after a load. */
const checksBetween = 120
const checksAfterLoad = 20

/** Memory outside the V8 heap: `free` memory is unused, `caches` are refilled by use. */
export type Holding = 'free' | 'caches'

export interface QuietCollectionPorts {
  /** Returns memory outside the V8 heap to the system; `caches` includes `free`. */
  readonly release: (what: Holding) => void
  /** Undefined if the process was started without `--expose-gc`; then nothing is ever collected. */
  readonly collect: (() => void) | undefined
  /** Resident memory of the process, in bytes. */
  readonly residentBytes: () => number
  /** Share of the time since the last call during which the event loop was busy. */
  readonly busyShare: () => number
}

/** Checks the process periodically without keeping it alive. Returns a function that stops the checks. */
export function collectWhenQuiet(release: QuietCollectionPorts['release']): () => void {
  const check = createMemoryCheck(ofThisThread(release), atStart)
  const timer = setInterval(check, checkMs).unref()
  return () => clearInterval(timer)
}

/**
 * Creates a check that returns memory if the load since the last check allows it and enough can be gained.
 */
export function createMemoryCheck(
  { collect, release, residentBytes, busyShare }: QuietCollectionPorts,
  left = residentBytes(),
): () => void {
  let checksToGo = 0
  let releasesToGo = 0
  return () => {
    checksToGo--
    releasesToGo--
    if (collect === undefined) return
    const share = busyShare()
    const isQuiet = share <= quietShare
    if (!isQuiet) checksToGo = Math.min(checksToGo, checksAfterLoad)
    const bytes = residentBytes()
    left = Math.min(left, bytes)
    if (share > lightShare || bytes - left < limits.memoryExcessBytes.value) return
    if (isQuiet && checksToGo <= 0) {
      collect()
      release('caches')
      left = residentBytes()
      checksToGo = checksBetween
      releasesToGo = checksBetween
    } else if (!isQuiet && releasesToGo <= 0) {
      release('free')
      releasesToGo = checksBetween
    }
  }
}

/** Measured before anything is opened, so that garbage of the start counts as excess. */
const atStart = residentBytes()
const { gc } = globalThis as { readonly gc?: (how: Readonly<Record<string, string>>) => void }

/** Collects the young generation in about a millisecond; does nothing without `--expose-gc`. */
export const collectYoung = (): void => gc?.({ type: 'minor', execution: 'sync' })

/** Bytes of large texts discarded since the last collection. */
let discarded = 0

/** Counts large texts that are discarded, or will be by the next call of `collectDiscarded`. */
export function noteDiscarded(bytes: number): void {
  discarded += bytes
}

/**
 * Collects young garbage if enough large texts were discarded. V8 alone would keep 48 MB of them, and as much
 * again that was in use during its last collection.
 */
export function collectDiscarded(): void {
  if (discarded < limits.uncollectedBytes.value) return
  discarded = 0
  collectYoung()
}

function ofThisThread(release: QuietCollectionPorts['release']): QuietCollectionPorts {
  let last = performance.eventLoopUtilization()
  return {
    release,
    collect: gc && (() => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })),
    residentBytes,
    busyShare() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, last)
      last = now
      return utilization
    },
  }
}
