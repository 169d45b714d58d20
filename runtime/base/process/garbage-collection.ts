/**
 * Returns memory to the system after a load. V8 keeps garbage until it allocates again, and pools the pages
 * of a heap that was larger before. Only a collection that reduces memory releases them: 110 of 270 MB after
 * batches of 10,000 entities. Small boards need that memory for other processes.
 *
 * 1. If the event loop is idle and resident memory is well above the last baseline: two such collections, in
 *    steps. The second frees what died while the first marked. Only these compact the heap, since up to 12 MB
 *    are then copied in one pause.
 * 2. While resident memory is above `memoryPressureBytes`: such a collection after a burst of work that made
 *    memory grow by `pressureGrowthBytes`, and per second of work; per four seconds while the event loop is
 *    busy all the time. The young generation, which such a collection shrinks, then stays small.
 * 3. Above `memoryThriftBytes`, V8 also lets the heap grow less between its own collections, and returns free
 *    pages at once. Caches are smaller then.
 */
import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { limits } from '#base/limits/limits.ts'
import { observeCollections, recordMarking } from './heap-marking.ts'
import { residentBytes } from './process-memory.ts'

/**
 * An event loop that is busy for at most this share of its time counts as idle. On a slow machine, the
 * timers of an idle gateway alone took 0.04 to 0.09.
 */
const quietShare = 0.1
const checkMs = 1000
/** Checks between two collections, since a collection stops the process for a moment; fewer after a load. */
const checksBetween = 120
const checksAfterLoad = 20
/** Least interval at which resident memory is checked against `memoryPressureBytes`. */
const pressureCheckMs = 100
/** Least interval of checking the size of the young generation; V8 may double it in each collection. */
const youngCheckMs = 50
/** Greatest interval of both: in an idle process, whose code is not in cache, each check takes long. */
const calmCheckMs = 500
/** Assumed growth of resident memory under load. */
const growthBytesPerMs = 256 * 1024
/** Number of checks after which a collection under pressure has ended. */
const pressureChecks = 8
/** Work of the event loop between two collections under pressure; each takes about 100 ms of it. */
const pressureWorkMs = 1000
/** As much as that while the event loop has no pauses in which a collection costs no throughput. */
const busyWorkMs = 4000

export interface QuietCollectionPorts {
  /** Frees memory outside the V8 heap that is refilled by use. */
  readonly release: () => void
  /**
   * Starts a collection, which has ended by the next check. Undefined if the process was started without
   * `--expose-gc`; then nothing is ever collected.
   */
  readonly collect: (() => void) | undefined
  /** Resident memory of the process, in bytes. */
  readonly residentBytes: () => number
  /** Share of the time since the last call during which the event loop was busy. */
  readonly busyShare: () => number
}

/** Checks the process periodically without keeping it alive. Returns a function that stops the checks. */
export function collectWhenQuiet(release: QuietCollectionPorts['release']): () => void {
  const collect = exposed.gc && (() => compacting(startCollection))
  const check = createMemoryCheck({ ...ofThisThread(release), collect }, atStart)
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
  let isCollecting = false
  let isSecondDue = false
  return () => {
    checksToGo--
    if (collect === undefined) return
    const isQuiet = busyShare() <= quietShare
    if (isCollecting) {
      isCollecting = false
      release()
      left = residentBytes()
      // The share includes the work of the collection.
      return
    }
    if (!isQuiet) checksToGo = Math.min(checksToGo, checksAfterLoad)
    const bytes = residentBytes()
    left = Math.min(left, bytes)
    const isDue = checksToGo <= 0 && bytes - left >= limits.memoryExcessBytes.value
    const isSecond = isSecondDue
    isSecondDue = false
    if (!isQuiet || !(isSecond || isDue)) return
    collect()
    isCollecting = true
    if (isSecond) return
    isSecondDue = true
    checksToGo = checksBetween
  }
}

/** Caches outside and inside the V8 heap. */
export interface Caches {
  readonly releaseMemory: QuietCollectionPorts['release']
  /** Called when caches should be small, and when they no longer should. */
  readonly saveMemory: (isShort: boolean) => void
}

/**
 * Collects on the main thread: when it is idle, and under pressure. Returns a function that stops both
 * checks.
 */
export function collectGarbage({ releaseMemory, saveMemory }: Caches): () => void {
  setCompaction(false)
  const workedMs = (): number => performance.eventLoopUtilization().active
  const collect = exposed.gc && startCollection
  const checkPressure = createPressureCheck({ collect, residentBytes, workedMs })
  const checkYoung = createYoungCheck({
    residentBytes,
    youngBytes,
    setGrowth: setYoungGrowth,
    setThrift(isThrifty) {
      setThrift(isThrifty)
      saveMemory(isThrifty)
    },
  })
  let pressureCheckAt = 0
  const check = (): NodeJS.Timeout => {
    checkYoung()
    if (performance.now() >= pressureCheckAt) {
      checkPressure()
      pressureCheckAt = performance.now() + pressureCheckMs - youngCheckMs / 2
    }
    return setTimeout(() => {
      timer = check()
    }, nextCheckMs(residentBytes())).unref()
  }
  let timer = check()
  const end = collectWhenQuiet(releaseMemory)
  // The report comes late, so what was discarded in the two turns before it is no longer counted.
  const endObserving = observeCollections(() => {
    discarded = 0
  })
  return () => {
    endObserving()
    clearTimeout(timer)
    setCompaction(true)
    setYoungGrowth(true)
    setThrift(false)
    end()
  }
}

/** Time until the next check (ms): before `memoryPressureBytes` is resident, if it grows as assumed. */
export function nextCheckMs(bytes: number): number {
  const ms = (limits.memoryPressureBytes.value - bytes) / growthBytesPerMs
  return Math.min(Math.max(ms, youngCheckMs), calmCheckMs)
}

export interface YoungCheckPorts extends Pick<QuietCollectionPorts, 'residentBytes'> {
  /** Memory reserved for the young generation, in bytes. */
  readonly youngBytes: () => number
  /** Called when the young generation may no longer grow, and when it may again. */
  readonly setGrowth: (mayGrow: boolean) => void
  /** Called when V8 and the caches should save memory rather than time, and when they no longer should. */
  readonly setThrift: (isThrifty: boolean) => void
}

/**
 * Creates the check that makes V8 save memory while too much is resident. V8 would use twice
 * `--max-semi-space-size` for the young generation, and pool the free pages of its heap: up to 50 MB.
 */
export function createYoungCheck(ports: YoungCheckPorts): () => void {
  const { residentBytes, youngBytes, setGrowth, setThrift } = ports
  let mayGrow = true
  let isThrifty = false
  return () => {
    const bytes = residentBytes()
    const isCrowded = bytes >= limits.memoryPressureBytes.value
    const isFull = bytes >= limits.memoryThriftBytes.value
    if (isFull !== isThrifty) setThrift(isFull)
    isThrifty = isFull
    const next = !isCrowded || youngBytes() < limits.youngPressureBytes.value
    if (next === mayGrow) return
    mayGrow = next
    setGrowth(next)
  }
}

const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0
const setYoungGrowth = (mayGrow: boolean): void =>
  setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? 2 : 1}`)
const setThrift = (isThrifty: boolean): void =>
  setFlagsFromString(isThrifty ? '--optimize-for-size' : '--no-optimize-for-size')

const setCompaction = (isOn: boolean): void => setFlagsFromString(isOn ? '--compact' : '--no-compact')

/** Starts a collection that compacts the heap: V8 chooses the pages to compact when it starts marking. */
function compacting(start: () => void): void {
  setCompaction(true)
  try {
    start()
  } finally {
    setCompaction(false)
  }
}

export interface PressureCheckPorts extends Pick<QuietCollectionPorts, 'collect' | 'residentBytes'> {
  /** Time since the start during which the event loop was busy, in ms. */
  readonly workedMs: () => number
}

/** Creates the check that collects under any load while too much memory is resident. */
export function createPressureCheck(ports: PressureCheckPorts): () => void {
  const { collect, residentBytes, workedMs } = ports
  let checksToGo = 0
  let collectedAt = 0
  let workedBefore = 0
  /** Least resident memory since the last collection. */
  let left = limits.memoryPressureBytes.value
  return () => {
    if (collect === undefined) return
    const worked = workedMs()
    const isBusy = worked - workedBefore > pressureCheckMs / 2
    workedBefore = worked
    const bytes = residentBytes()
    left = Math.min(left, bytes)
    if (checksToGo > 0) {
      checksToGo--
      return
    }
    if (bytes < limits.memoryPressureBytes.value) return
    // V8 collects no young garbage beside old garbage: in a burst, it would end the collection in one pause.
    const isAfterBurst = !isBusy && bytes - left >= limits.pressureGrowthBytes.value
    if (!isAfterBurst && worked - collectedAt < (isBusy ? busyWorkMs : pressureWorkMs)) return
    collect()
    left = Number.POSITIVE_INFINITY
    collectedAt = worked
    checksToGo = pressureChecks
  }
}

/** Measured before anything is opened, so that garbage of the start counts as excess. */
const atStart = residentBytes()
/** Node's `gc`; undefined without `--expose-gc`. */
const exposed = globalThis as { readonly gc?: (how: Readonly<Record<string, string>>) => void }

/** V8 starts a collection if it holds 64 MiB more outside its heap than after the last one. */
const startBytes = 66 * 1024 * 1024
/**
 * At 128 MiB outside its heap V8 would collect everything at once; the rest is room for requests that arrive
 * meanwhile.
 */
const mostBytes = 96 * 1024 * 1024

/**
 * Starts a collection that reduces memory, in steps between which the event loop continues. `gc()` would
 * block for all of it: 140 ms with 65 MB in use. V8 has no call for this, but a large allocation outside its
 * heap starts a collection. Nothing is written to that allocation, so it takes no memory. It is freed at
 * once: V8 marks the rest of the heap in one pause while it counts 32 MB above its limit. V8 reads
 * `--optimize-for-size` when the collection starts, and then releases pooled pages.
 */
function startCollection(): void {
  if (getHeapStatistics().external_memory + startBytes >= mostBytes) return
  setThrift(true)
  try {
    new ArrayBuffer(startBytes).transfer(0)
  } catch {
    // The system refuses the address space; V8 then collects on its own schedule.
  } finally {
    setThrift(residentBytes() >= limits.memoryThriftBytes.value)
  }
}

/** Collects the young generation in about a millisecond; does nothing without `--expose-gc`. */
export const collectYoung = (): void => exposed.gc?.({ type: 'minor', execution: 'sync' })

/** Bytes of large texts discarded since V8's last collection, or since this module last decided on one. */
let discarded = 0

/** Counts large texts that are discarded, or will be by the next call of `collectDiscarded`. */
export function noteDiscarded(bytes: number): void {
  discarded += bytes
}

/**
 * Whether enough large texts were discarded to collect them. Below `memoryPressureBytes` they are left to V8,
 * which may keep 64 MiB of payloads outside its heap until it marks. That costs less time.
 */
function isCollectionDue(): boolean {
  if (discarded < limits.uncollectedBytes.value) return false
  if (residentBytes() >= limits.memoryPressureBytes.value) return true
  discarded = 0
  return false
}

/**
 * Collects young garbage if enough large texts were discarded while more than `memoryPressureBytes` is
 * resident. V8 alone would keep 48 MB of them, and as much again that was in use during its last collection.
 */
export function collectDiscarded(): void {
  if (!isCollectionDue()) return
  discarded = 0
  collectYoung()
}

/** The collection of `collectDiscardedBetweenMarkings` that waits or runs. */
let collecting: Promise<void> | undefined

/**
 * As `collectDiscarded`, for long work: not while V8 marks, since V8 would first end that in one pause, of up
 * to 110 ms if the marking has just begun. The next call collects.
 */
export async function collectDiscardedBetweenMarkings(): Promise<void> {
  if (!isCollectionDue()) return
  collecting ??= collectBetweenMarkings().finally(() => {
    collecting = undefined
  })
  await collecting
}

async function collectBetweenMarkings(): Promise<void> {
  const isMarkingNow = recordMarking()
  await nextTurn()
  await nextTurn()
  if (!isMarkingNow()) collectDiscarded()
}

function ofThisThread(release: QuietCollectionPorts['release']): Omit<QuietCollectionPorts, 'collect'> {
  let last = performance.eventLoopUtilization()
  return {
    release,
    residentBytes,
    busyShare() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, last)
      last = now
      return utilization
    },
  }
}
