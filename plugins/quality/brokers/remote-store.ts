/**
 * Saves what a remote broker reported: entities, and records of streams, each in one transaction with the
 * times that it counted. Reports that arrive together share a save.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { PluginDatabase } from '#contract'
import {
  createStreamSaving,
  type StreamSaving,
  type StreamSavingPorts,
} from '#plugins/quality/streams/stream-saving.ts'
import { type CountedTimes, createCountedTimes } from './counted-times.ts'
import { createRemoteEntities, type RemoteEntities } from './remote-entities.ts'

export interface RemoteStorePorts extends Omit<StreamSavingPorts, 'cursor' | 'beside'> {
  readonly database: PluginDatabase
}

export interface RemoteStore {
  readonly entities: RemoteEntities
  readonly counted: CountedTimes
  readonly saving: StreamSaving
  /** Settles when everything taken so far is on disk. If it cannot be written, the next call retries. */
  save(): Promise<void>
}

export function createRemoteStore(ports: RemoteStorePorts): RemoteStore {
  const { database, clock } = ports
  const entities = createRemoteEntities(database)
  const counted = createCountedTimes(database)
  const saving = createStreamSaving({
    ...ports,
    cursor: () => ({ position: 0, committed: clock.now(), countsFrom: 0 }),
    beside: { steps: entities.steps, stream: counted.save, removed: counted.remove },
  })
  let gathering: Promise<void> | undefined

  return Object.freeze({
    entities,
    counted,
    saving,
    save() {
      gathering ??= delay(limits.qualityReceiveMs.value).then(() => {
        gathering = undefined
        return saving.now()
      })
      return gathering
    },
  } satisfies RemoteStore)
}
