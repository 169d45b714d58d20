/**
 * Saves what a remote broker reported: records of streams, their entities, and the times that were counted,
 * in one transaction. Reports that arrive together share it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { PluginDatabase } from '#contract'
import type { Downtime } from '#plugins/quality/measures/stream-record.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import type { StreamStatements } from '#plugins/quality/streams/stream-statements.ts'
import { type CountedTimes, createCountedTimes } from './counted-times.ts'
import { createRemoteEntities, type RemoteEntities } from './remote-entities.ts'

type Unsaved = ReturnType<KnownStreams['takeUnsaved']>

export interface RemoteStorePorts {
  readonly database: PluginDatabase
  readonly table: StreamStatements
  readonly unsaved: () => Unsaved
  readonly downtimes: readonly Downtime[]
  /** Called in each transaction. */
  readonly saved: () => void
  readonly now: () => number
}

export interface RemoteStore {
  readonly entities: RemoteEntities
  readonly counted: CountedTimes
  /** Settles when everything taken so far is on disk. If it cannot be written, the next call retries. */
  save(): Promise<void>
  /** Saves at once. @throws if it cannot be written. */
  saveNow(): void
}

export function createRemoteStore({
  database,
  table,
  unsaved,
  downtimes,
  saved,
  now,
}: RemoteStorePorts): RemoteStore {
  const entities = createRemoteEntities(database)
  const counted = createCountedTimes(database)
  /** State that a failed transaction did not write. */
  let left: Unsaved | undefined
  let saving: Promise<void> | undefined

  function saveNow(): void {
    const state = left === undefined ? unsaved() : joined(left, unsaved())
    left = state
    table.save({
      ...state,
      downtimes,
      cursor: { position: 0, committed: now(), countsFrom: 0 },
      saved() {
        saved()
        entities.write()
        counted.write()
      },
    })
    left = undefined
    entities.written()
    counted.written()
  }

  return Object.freeze({
    entities,
    counted,
    save() {
      saving ??= delay(limits.qualityReceiveMs.value).then(() => {
        saving = undefined
        saveNow()
      })
      return saving
    },
    saveNow,
  } satisfies RemoteStore)
}

function joined(before: Unsaved, after: Unsaved): Unsaved {
  const removed = [...before.removed, ...after.removed]
  const streams = [...before.streams, ...after.streams].filter(({ n }) => !removed.includes(n))
  return {
    streams: new Set(streams),
    observations: new Map([...before.observations, ...after.observations]),
    removed,
  }
}
