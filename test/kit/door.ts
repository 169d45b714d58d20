/**
 * The real write path for tests of rooms above the store: a migrated database file, the writer thread and the
 * door, with one tenant and no upkeep. Nothing is imitated; opening the same file again is a restart.
 */
import { AssertionError } from 'node:assert'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { createDoor, type Door } from '#broker/commit/door.ts'
import { type Database, migrate, openReader } from '#store/file/database.ts'
import { createRecords } from '#store/tables/records.ts'
import { createWriter, type Writer } from '#store/writer/writer.ts'
import { noUpkeep } from './bare-door.ts'

export interface OpenDoor {
  readonly door: Door
  /** A connection that reads what the door has written. */
  readonly database: Database
  /** Finishes what is queued, then closes file and thread. The file stays. */
  close(): Promise<void>
}

export interface TemporaryDatabase {
  readonly file: string
  remove(): void
}

/** A path for a database file in a new temporary folder, and how to remove the folder. */
export function temporaryDatabase(): TemporaryDatabase {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-'))
  return { file: join(folder, 'tenant.db'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export interface DoorOptions {
  readonly lingerMs?: number
  /** Asked before each group is written: why it leaves no trace, if it shall not be. */
  readonly refuse?: (() => Promise<GatewayError | undefined>) | undefined
}

/** Opens a file by its own writer thread; a new file is made when there is none. */
export async function openDoor(file: string, options: DoorOptions = {}): Promise<OpenDoor> {
  migrate(file)
  const writer = createWriter((error) => {
    throw new AssertionError({ message: `the writer thread died: ${String(error)}` })
  })
  await writer.open('', file, 'NORMAL')
  const database = openReader(file)
  const door = createDoor(
    {
      tenant: '',
      writer: options.refuse === undefined ? writer : refusing(writer, options.refuse),
      clock: systemClock,
      log: createLog({ level: 'error', clock: systemClock, write: (line) => process.stderr.write(line) }),
      metrics: createMetrics(),
      number: createRecords(database).logLast(),
      at: 0,
      upkeep: noUpkeep,
      onDamage: () => undefined,
    },
    { lingerMs: options.lingerMs ?? 5 },
  )
  return {
    door,
    database,
    async close() {
      await door.close()
      database.close()
      await writer.close('')
      await writer.end()
    },
  }
}

function refusing(writer: Writer, refuse: NonNullable<DoorOptions['refuse']>): Pick<Writer, 'write'> {
  return {
    write(group, done) {
      void refuse().then((error) => {
        if (error === undefined) writer.write(group, done)
        else done(error, { chunks: 0, logBytes: 0 })
      })
    },
  }
}
