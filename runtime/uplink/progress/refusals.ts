/**
 * Queue of changes that the centres refused, kept for operators. Each uplink has its own limit of steps and
 * bytes, so that one centre that refuses everything displaces no refusals of other uplinks; removed uplinks
 * share one. When a queue is full, its oldest entries are dropped, logged and counted, and reported to the
 * centre as gaps while the uplink exists.
 */

import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { lastRefusalKey, type UplinkStates } from '#store/tables/uplink-states.ts'
import type { StepRefusal } from '#uplink/centre/outcome.ts'
import { serializeStep } from '#uplink/steps/retry-plan.ts'
import type { Step } from '#uplink/steps/step-plan.ts'

export interface RefusalsPorts {
  readonly states: Pick<UplinkStates, 'ids' | 'lastRefusal' | 'refusalSizes' | 'refusal'>
  readonly door: Pick<Door, 'commit'>
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}

/** A refusal that is dropped, and when (ms) it was refused. */
export interface DroppedRefusal {
  /** The unique number of the refusal. */
  readonly q: number
  readonly entity: Step['entity']
  /** The attributes of the step; absent for deletions. */
  readonly attributes?: Readonly<Record<string, readonly AttributeInstance[]>>
  readonly at: number
}

export type OnDropped = (gone: readonly DroppedRefusal[]) => { stage(stage: Stage): void; undo(): void }

export type Refusals = ReturnType<typeof createRefusals>

export function createRefusals({ states, door, clock, log }: RefusalsPorts) {
  let last = states.lastRefusal()
  /** Sizes in bytes by refusal number, oldest first, by uplink. */
  const kept = new Map<string, Map<number, number>>()
  const keptOf = (uplink: string): Map<number, number> => {
    const known = kept.get(uplink) ?? new Map<number, number>()
    kept.set(uplink, known)
    return known
  }
  const known = new Set(states.ids())
  for (const { q, uplink, bytes } of states.refusalSizes())
    keptOf(known.has(uplink) ? uplink : orphans).set(q, bytes)
  const droppedCounts = new Map<string, number>()
  /** Serializes changes: the entries to drop are chosen among those on disk. */
  const turn = createSemaphore()

  async function add(uplink: string, refusals: readonly StepRefusal[], onDropped: OnDropped): Promise<void> {
    const mine = keptOf(uplink)
    const rows = refusals.map(({ step, reason }) => ({ q: ++last, step, reason, text: serializeStep(step) }))
    const fresh = rows.map(({ q, text }) => [q, text.length] as const)
    const old = excess([...mine, ...fresh])
    const lost = old.map((q): DroppedRefusal => {
      const { step, at } = states.refusal(q) ?? {
        step: rows.find((row) => row.q === q)!.text,
        at: clock.now(),
      }
      return { ...(JSON.parse(step) as Pick<DroppedRefusal, 'entity' | 'attributes'>), at, q }
    })
    const gaps = lost.length === 0 ? undefined : onDropped(lost)
    try {
      await door.commit((stage) => {
        for (const { q, step, reason, text } of rows)
          stage.write('uplink-refusal.insert', q, uplink, step.entity.id, stage.at, reason, text)
        stage.write('meta.put', lastRefusalKey, last)
        for (const q of old) stage.write('uplink-refusal.delete', q)
        gaps?.stage(stage)
      })
    } catch (error) {
      gaps?.undo()
      throw error
    }
    for (const [q, bytes] of fresh) mine.set(q, bytes)
    for (const q of old) mine.delete(q)
    for (const { step, reason } of rows)
      log.warn('uplink.refused', { uplink, entity: step.entity.id, reason })
    if (old.length === 0) return
    droppedCounts.set(uplink, (droppedCounts.get(uplink) ?? 0) + old.length)
    log.warn('uplink.refused-let-go', { uplink, steps: old.length })
  }

  async function forget(uplink: string): Promise<void> {
    const all = keptOf(orphans)
    const mine = [...keptOf(uplink)]
    const old = excess([...all, ...mine].toSorted(([a], [b]) => a - b))
    if (old.length > 0)
      await door.commit(
        (stage) => {
          for (const q of old) stage.write('uplink-refusal.delete', q)
        },
        { isSparing: true },
      )
    kept.delete(uplink)
    for (const [q, bytes] of mine) all.set(q, bytes)
    for (const q of old) all.delete(q)
    if (old.length > 0) log.warn('uplink.refused-let-go', { uplink, steps: old.length })
  }

  async function remove(q: number): Promise<void> {
    await door.commit((stage) => stage.write('uplink-refusal.delete', q), { isSparing: true })
    for (const mine of kept.values()) mine.delete(q)
  }

  return Object.freeze({
    /**
     * Stores refusals; resolves once they are on disk. Dropped entries are passed to `onDropped`, whose
     * result stages the gaps in the same commit; if the commit fails, it is undone.
     */
    add: (uplink: string, refusals: readonly StepRefusal[], onDropped: OnDropped) =>
      turn(() => add(uplink, refusals, onDropped)),
    /** Resolves once it is deleted from disk. */
    remove: (q: number) => turn(() => remove(q)),
    /**
     * Moves the refusals of a removed uplink to the queue that removed uplinks share; resolves once that is
     * on disk.
     */
    forget: (uplink: string) => turn(() => forget(uplink)),
    /** The number of refusals of an uplink dropped since start. */
    dropped: (uplink: string) => droppedCounts.get(uplink) ?? 0,
  })
}

/** Key of the queue that removed uplinks share; no subscription has this id. */
const orphans = ''

/** The numbers of the oldest entries beyond the limits. */
function excess(sizes: readonly (readonly [q: number, bytes: number])[]): readonly number[] {
  let count = sizes.length - limits.uplinkRefusalsMax.value
  let bytes = -limits.uplinkRefusalBytesMax.value
  for (const [, size] of sizes) bytes += size
  const old: number[] = []
  for (const [q, size] of sizes) {
    if (count <= 0 && bytes <= 0) break
    old.push(q)
    count--
    bytes -= size
  }
  return old
}
