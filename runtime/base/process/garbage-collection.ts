/**
 * Gives memory back after a load. V8 keeps garbage until something is to be allocated, and the pages of a heap that
 * was larger once in a pool of its own, which only a collection of last resort gives back: 110 of 270 MB after batches
 * of 10,000 entities. On a board that is missed elsewhere. So one is asked for when the event loop was quiet for a while
 * and resident memory is well above what the last one left; never under load. Beside a light load, what is free outside
 * the heap goes back alone, which is a matter of milliseconds.
 */
import { performance } from 'node:perf_hooks'
import { limits } from '#base/limits/limits.ts'
import { residentBytes } from './process-memory.ts'

/** Share of its time that a quiet event loop works at most. */
const quietShare = 0.05
/** Beyond this share nothing is given back. */
const lightShare = 0.5
const lookMs = 1000
/** A collection stops everything for a moment, so that many looks pass before the next one; fewer after a load. */
const looksBetween = 120
const looksAfterLoad = 20

/** What a thread holds outside V8's heap: `free` is what nobody uses, `caches` fill again as they are used. */
export type Holding = 'free' | 'caches'

export interface QuietCollectionPorts {
  /** Gives back what is held outside V8's heap; `caches` include what is free. */
  readonly release: (what: Holding) => void
  /** Absent where the process was started without `--expose-gc`: then nothing is ever done. */
  readonly collect: (() => void) | undefined
  /** Bytes of memory, whoever holds them. */
  readonly residentBytes: () => number
  /** Share of the time since the last call that the event loop worked. */
  readonly busyShare: () => number
}

/**
 * Looks at the process from time to time, which does not keep it alive. Returns its end.
 */
export function collectWhenQuiet(release: QuietCollectionPorts['release']): () => void {
  const look = createMemoryCheck(ofThisThread(release), atStart)
  const timer = setInterval(look, lookMs).unref()
  return () => clearInterval(timer)
}

/** One look: gives back what the load since the last one allows, where there is enough to gain. */
export function createMemoryCheck(
  { collect, release, residentBytes, busyShare }: QuietCollectionPorts,
  left = residentBytes(),
): () => void {
  let looksToGo = 0
  let releasesToGo = 0
  return () => {
    looksToGo--
    releasesToGo--
    if (collect === undefined) return
    const share = busyShare()
    const isQuiet = share <= quietShare
    if (!isQuiet) looksToGo = Math.min(looksToGo, looksAfterLoad)
    const bytes = residentBytes()
    left = Math.min(left, bytes)
    if (share > lightShare || bytes - left < limits.memoryExcessBytes.value) return
    if (isQuiet && looksToGo <= 0) {
      collect()
      release('caches')
      left = residentBytes()
      looksToGo = looksBetween
      releasesToGo = looksBetween
    } else if (!isQuiet && releasesToGo <= 0) {
      release('free')
      releasesToGo = looksBetween
    }
  }
}

/** Before anything was opened, so that what the start leaves behind is seen as such. */
const atStart = residentBytes()
const { gc } = globalThis as { readonly gc?: (how: Readonly<Record<string, string>>) => void }

/** Collects what was made lately, a matter of a millisecond; nothing where the process was started without `--expose-gc`. */
export const collectYoung = (): void => gc?.({ type: 'minor', execution: 'sync' })

/** Bytes of large texts that were done with since the last collection, whoever made them. */
let doneWith = 0

/** To be told of large texts that are done with, or will be by the next time that `collectDiscarded` is called. */
export function noteDiscarded(bytes: number): void {
  doneWith += bytes
}

/** Collects young garbage where it is worth it: V8 alone would keep 48 MB of large texts, and as much again that was in use when it looked. */
export function collectDiscarded(): void {
  if (doneWith < limits.uncollectedBytes.value) return
  doneWith = 0
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
