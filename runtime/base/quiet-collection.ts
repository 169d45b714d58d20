/**
 * Gives memory back after a load. V8 keeps garbage until something is to be allocated, and the pages of a heap that
 * was larger once in a pool of its own, which only a collection of last resort gives back: 110 of 270 MB after batches
 * of 10,000 entities. On a board that is missed elsewhere. So one is asked for when the event loop was quiet for a while
 * and resident memory is well above what the last one left; never under load.
 */
import { performance } from 'node:perf_hooks'
import { limits } from './limits.ts'

/** Share of its time that a quiet event loop works at most. */
const quietShare = 0.05
const lookMs = 1000
/** A collection stops everything for a moment, so that many looks pass before the next one. */
const looksBetween = 120

export interface QuietCollectionPorts {
  /** Absent where the process was started without `--expose-gc`: then nothing is ever done. */
  readonly collect: (() => void) | undefined
  /** Bytes of memory, whoever holds them. */
  readonly residentBytes: () => number
  /** Share of the time since the last call that the event loop worked. */
  readonly busyShare: () => number
}

/** Looks at the process from time to time, which does not keep it alive. Returns its end. */
export function collectWhenQuiet(ports: QuietCollectionPorts = ofThisProcess()): () => void {
  const look = createLook(ports)
  const timer = setInterval(look, lookMs).unref()
  return () => clearInterval(timer)
}

/** One look: collects when it was quiet since the last one and there is enough to gain. */
export function createLook({ collect, residentBytes, busyShare }: QuietCollectionPorts): () => void {
  let left = residentBytes()
  let looks = looksBetween
  return () => {
    looks++
    if (busyShare() > quietShare || collect === undefined) return
    const bytes = residentBytes()
    left = Math.min(left, bytes)
    if (bytes - left < limits.memoryExcessBytes.value || looks < looksBetween) return
    looks = 0
    collect()
    left = residentBytes()
  }
}

function ofThisProcess(): QuietCollectionPorts {
  const { gc } = globalThis as { readonly gc?: (how: Readonly<Record<string, string>>) => void }
  let last = performance.eventLoopUtilization()
  return {
    collect:
      gc === undefined ? undefined : () => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' }),
    residentBytes: process.memoryUsage.rss,
    busyShare() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, last)
      last = now
      return utilization
    },
  }
}
