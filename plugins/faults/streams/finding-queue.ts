/**
 * The findings that wait to be written, in the records of their streams: one write per entity, into which
 * newer findings of the entity are merged. A write that was sent is not changed: the writer repeats it until
 * the broker responds, and a newer one of its entity waits beside it.
 *
 * A stream, and all streams together, have a ceiling. Beyond it a Fault that the broker does not have is
 * dropped, with its begin and its end. The end of a Fault that the broker has is never dropped. So a stream
 * can exceed the ceiling by the faults that were open at once, of which there is one per class.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import { faultTerms } from '#contract/vocabulary.ts'
import type { FaultStream, FindingWrite } from './fault-stream.ts'

export interface FindingQueue {
  add(stream: FaultStream, write: FindingWrite): void
  /** Takes over the findings of a stream that was restored from disk; any of them may have been sent. */
  restore(stream: FaultStream): void
  /** The findings to be sent, at most one per entity. Until they are removed, it returns them again. */
  send(stream: FaultStream): readonly FindingWrite[]
  /** Removes findings that were written. */
  remove(stream: FaultStream, written: readonly FindingWrite[]): void
  /** The stream was deleted. */
  delete(stream: FaultStream): void
  /** Findings of all streams. */
  readonly size: () => number
  /** Findings that were dropped because too many waited. */
  readonly dropped: () => number
}

export interface FindingQueuePorts {
  /** Whether the broker has an entity; false if that is unknown. */
  readonly isKnown: (id: string) => boolean
  readonly log: Log
  /** Ceilings; overridden by tests. */
  readonly most?: { readonly ofStream: number; readonly ofAll: number }
}

export function createFindingQueue({ isKnown, log, most }: FindingQueuePorts): FindingQueue {
  const { ofStream, ofAll } = most ?? {
    ofStream: limits.faultsWritesMax.value,
    ofAll: limits.faultsWritesAllMax.value,
  }
  let size = 0
  let dropped = 0
  /** Streams that lost findings since their last write: each is logged once. */
  const losing = new Set<string>()

  function drop(stream: FaultStream): void {
    const { writes, open } = stream.record
    const unsent = writes.filter(({ isSent }) => isSent !== true)
    const isWhole = ({ isFirst, entity }: FindingWrite): boolean => isFirst === true && !isKnown(entity.id)
    const victim =
      unsent.find((write) => faultTerms.end in write.entity && isWhole(write)) ??
      unsent.find(isWhole) ??
      unsent.find(({ operation }) => operation === 'update')
    if (victim === undefined) return
    writes.splice(writes.indexOf(victim), 1)
    size--
    dropped++
    const at = open.findIndex(({ id }) => id === victim.entity.id)
    if (at !== -1) open[at] = { ...open[at]!, isDropped: true }
    if (losing.has(stream.id)) return
    losing.add(stream.id)
    log.warn('faults.dropped', { stream: stream.id, entity: victim.entity.id, waiting: size, dropped })
  }

  return Object.freeze({
    add(stream, write) {
      const { writes } = stream.record
      const at = writes.findLastIndex(
        ({ entity, isSent }) => entity.id === write.entity.id && isSent !== true,
      )
      if (at !== -1) {
        writes[at] = merged(writes[at]!, write)
        return
      }
      writes.push(write)
      size++
      if (writes.length > ofStream || size > ofAll) drop(stream)
    },
    restore({ record }) {
      const byId = new Map<string, FindingWrite>()
      for (const write of record.writes) {
        const before = byId.get(write.entity.id)
        byId.set(write.entity.id, before === undefined ? write : merged(before, write))
      }
      record.writes = [...byId.values()].map((write) => ({ ...write, isSent: true }))
      size += record.writes.length
    },
    send({ record }) {
      if (!record.writes.some(({ isSent }) => isSent === true))
        record.writes = record.writes.map((write) => ({ ...write, isSent: true }))
      return record.writes.filter(({ isSent }) => isSent === true)
    },
    remove({ id, record }, written) {
      const left = record.writes.filter((one) => !written.includes(one))
      size -= record.writes.length - left.length
      record.writes = left
      losing.delete(id)
    },
    delete({ id, record }) {
      size -= record.writes.length
      record.writes = []
      losing.delete(id)
    },
    size: () => size,
    dropped: () => dropped,
  } satisfies FindingQueue)
}

/** Both writes in one: of each attribute the newer value. */
const merged = (older: FindingWrite, newer: FindingWrite): FindingWrite => ({
  ...older,
  entity: { ...older.entity, ...newer.entity },
})
