/**
 * The writer thread: holds the only writing connection of each tenant, runs one group as one transaction with
 * `synchronous=FULL`, and checkpoints between groups. It decides nothing. A group either is on disk as a whole when
 * `written` is said, or has left no trace when `failed` is.
 */
import { parentPort } from 'node:worker_threads'
import { assert } from '#base/errors.ts'
import { failpoint } from '#base/failpoints.ts'
import { limits } from '#base/limits.ts'
import { type Database, openWriter } from './database.ts'
import { foldEntity, foldStream } from './fold.ts'
import { createHistory, type History } from './history.ts'
import { encodeObservations } from './observation-blob.ts'
import { unsettled } from './records.ts'
import { type Row, type SqlValue, type WriteStatement, writeStatements } from './rows.ts'
import type { FromWriter, GroupMessage, OpenMessage, ToWriter } from './writer-protocol.ts'

interface Tenant {
  readonly database: Database
  readonly history: History
  readonly run: (row: Row) => void
  readonly begin: () => void
  readonly commit: () => void
  readonly rollback: () => void
  checkpointAt: number
}

assert(parentPort !== null, 'the writer runs as a worker thread')
const port = parentPort
const tenants = new Map<string, Tenant>()
const say = (message: FromWriter): void => port.postMessage(message)

port.on('message', (message: ToWriter) => {
  if (message.kind === 'group') write(message)
  else if (message.kind === 'open') open(message)
  else close(message.tenant)
})

function open({ tenant, file, synchronous }: OpenMessage): void {
  try {
    tenants.set(tenant, openTenant(openWriter(file, synchronous)))
    say({ kind: 'opened', tenant })
  } catch (error) {
    say(failure(tenant, error))
  }
}

/** What cannot be copied back now is found in the WAL at the next start. */
function close(name: string): void {
  const tenant = tenants.get(name)
  tenants.delete(name)
  if (tenant !== undefined) {
    tryCheckpoint(tenant.database, 'TRUNCATE')
    tenant.database.close()
  }
  say({ kind: 'closed', tenant: name })
}

function openTenant(database: Database): Tenant {
  const prepared = new Map<WriteStatement, (...parameters: SqlValue[]) => unknown>()
  const begin = database.prepare('BEGIN IMMEDIATE')
  const commit = database.prepare('COMMIT')
  const rollback = database.prepare('ROLLBACK')
  return {
    database,
    history: createHistory(database),
    run(row) {
      const name = row[0]
      let statement = prepared.get(name)
      if (statement === undefined) {
        const compiled = database.prepare<SqlValue[]>(writeStatements[name])
        statement = (...parameters) => compiled.run(...parameters)
        prepared.set(name, statement)
      }
      statement(...row.slice(1))
    },
    begin: () => begin.run(),
    commit: () => commit.run(),
    rollback: () => {
      try {
        if (database.inTransaction) rollback.run()
      } catch {
        // A disk that fails may refuse this, too; SQLite has then ended the transaction by itself.
      }
    },
    checkpointAt: 0,
  }
}

function write(group: GroupMessage): void {
  const tenant = tenants.get(group.tenant)
  assert(tenant !== undefined, 'groups come for open tenants')
  let chunks = 0
  let logBytes = 0
  try {
    tenant.begin()
    for (const { n, at, heard, ...batch } of group.blobs) {
      const body = encodeObservations(batch)
      logBytes += body.length
      const kind = batch.unset === undefined ? 1 : unsettled + 1
      tenant.run(['log.blob', n, at, kind, body, heard ?? null])
    }
    for (const row of group.rows) {
      if (row[0] === 'log.change') logBytes += Buffer.byteLength(row[5] as string)
      tenant.run(row)
    }
    for (const fold of group.streamFolds) chunks += foldStream(fold, tenant.history, tenant.run)
    for (const fold of group.entityFolds) foldEntity(fold, tenant.history, tenant.run)
    failpoint('writer:before-commit')
    tenant.commit()
    failpoint('writer:after-commit')
  } catch (error) {
    tenant.rollback()
    // What a checkpoint copies back need not be written anew.
    tryCheckpoint(tenant.database, 'PASSIVE')
    say(failure(group.tenant, error))
    return
  }
  say({ kind: 'written', tenant: group.tenant, chunks, logBytes })
  if (group.isShort === true) tryCheckpoint(tenant.database, 'PASSIVE')
  else checkpoint(tenant)
}

function failure(tenant: string, error: unknown): FromWriter {
  const { code = 'UNKNOWN', message } = error as { code?: string; message: string }
  return { kind: 'failed', tenant, code, message }
}

/** Copies the WAL back when it has grown enough; PASSIVE never waits for readers. */
function checkpoint(tenant: Tenant): void {
  const now = performance.now()
  if (now < tenant.checkpointAt) return
  tenant.checkpointAt = now + 100
  const pages = tryCheckpoint(tenant.database, 'NOOP')
  if (pages < limits.walPagesMax.value) return
  tryCheckpoint(tenant.database, 'PASSIVE')
  failpoint('writer:after-checkpoint')
}

/**
 * Returns the pages in the WAL. A checkpoint that fails loses nothing and is tried again with a later commit; on a
 * full disk the commits fail too, and those are told.
 */
function tryCheckpoint(database: Database, mode: 'NOOP' | 'PASSIVE' | 'TRUNCATE'): number {
  try {
    return (database.pragma(`wal_checkpoint(${mode})`) as { log: number }[])[0]?.log ?? 0
  } catch {
    return 0
  }
}
