/**
 * The writer thread: holds the only writing connection of each tenant, runs one group as one transaction with
 * `synchronous=FULL`, and checkpoints between groups. It decides nothing. After `written` the whole group is
 * on disk; after `failed` none of it is.
 */
import { parentPort } from 'node:worker_threads'
import { collectDiscarded, collectWhenQuiet, noteDiscarded } from '#base/process/garbage-collection.ts'
import { assert } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import { encodeObservations } from '#store/chunks/observation-blob.ts'
import type { SqlValue } from '#store/chunks/sql-value.ts'
import { createCopyBack, endLog } from '#store/file/copy-back.ts'
import { type Database, openWriter } from '#store/file/database.ts'
import { foldEntity, foldStream } from '#store/history/fold.ts'
import { createHistory } from '#store/history/history-rows.ts'
import { unsettled } from '#store/tables/records.ts'
import { type WriteRow, type WriteStatement, writeStatements } from './write-statements.ts'
import type { FromWriter, GroupMessage, OpenMessage, ToWriter } from './writer-protocol.ts'

assert(parentPort !== null, 'the writer runs as a worker thread')
const port = parentPort
type Tenant = ReturnType<typeof openTenant>
const tenants = new Map<string, Tenant>()
const post = (message: FromWriter): void => port.postMessage(message)

// This thread has a heap of its own, which the main thread's garbage collections do not cover.
collectWhenQuiet(() => {
  for (const { database } of tenants.values()) database.pragma('shrink_memory')
})

port.on('message', (message: ToWriter) => {
  if (message.kind === 'group') write(message)
  else if (message.kind === 'open') open(message)
  else if (message.kind === 'copyBack') copyBack(message.tenant)
  else close(message.tenant)
})

function open({ tenant, file, synchronous }: OpenMessage): void {
  try {
    tenants.set(tenant, openTenant(openWriter(file, synchronous), file))
    post({ kind: 'opened', tenant })
  } catch (error) {
    post(failure(tenant, error))
  }
}

function copyBack(file: string): void {
  try {
    post({ kind: 'copied', tenant: file, isEnded: endLog(file) })
  } catch (error) {
    post(failure(file, error))
  }
}

/** A WAL that cannot be checkpointed now is recovered at the next start. */
function close(name: string): void {
  const tenant = tenants.get(name)
  tenants.delete(name)
  if (tenant !== undefined) {
    tenant.copyBack.cutOff()
    tenant.database.close()
  }
  post({ kind: 'closed', tenant: name })
}

function openTenant(database: Database, file: string) {
  const prepared = new Map<WriteStatement, (...parameters: SqlValue[]) => unknown>()
  const begin = database.prepare('BEGIN IMMEDIATE')
  const commit = database.prepare('COMMIT')
  const rollback = database.prepare('ROLLBACK')
  return {
    database,
    history: createHistory(database),
    run(row: WriteRow) {
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
        // A failing disk may refuse the rollback too; SQLite has then ended the transaction by itself.
      }
    },
    copyBack: createCopyBack(database, file, () => failpoint('writer:after-checkpoint')),
  }
}

function write(group: GroupMessage): void {
  const tenant = tenants.get(group.tenant)
  assert(tenant !== undefined, 'a group names an open tenant')
  // When disk space is short, truncate the WAL before writing.
  if (group.walBytesMax === 0) tenant.copyBack.cutOff()
  let reply = commit(tenant, group)
  // Truncating the WAL also frees the pages that the failed attempt wrote, so the commit is retried once.
  if (reply.kind === 'failed' && tenant.copyBack.cutOff() && reply.code === 'SQLITE_FULL')
    reply = commit(tenant, group)
  post(reply)
  if (reply.kind === 'written') tenant.copyBack.after(group.walBytesMax)
  noteDiscarded(bufferBytes(group))
  collectDiscarded()
}

/** Bytes that a group holds outside the heap of this thread. */
function bufferBytes({ blobs, rows }: GroupMessage): number {
  let bytes = 0
  for (const { triples } of blobs) bytes += triples.byteLength
  for (const row of rows) for (const value of row) if (value instanceof Uint8Array) bytes += value.byteLength
  return bytes
}

function commit(tenant: Tenant, group: GroupMessage): FromWriter & { readonly kind: 'written' | 'failed' } {
  let chunks = 0
  let logBytes = 0
  try {
    tenant.begin()
    tenant.copyBack.begin()
    for (const { n, at, via, ...batch } of group.blobs) {
      const body = encodeObservations(batch)
      logBytes += body.length
      const kind = batch.unset === undefined ? 1 : unsettled + 1
      tenant.run(['log.blob', n, at, kind, body, via ?? null])
    }
    for (const row of group.rows) {
      if (row[0] === 'log.change') logBytes += Buffer.byteLength(row[5] as string)
      tenant.run(row)
    }
    for (const fold of group.streamFolds) chunks += foldStream(fold, tenant.history, tenant.run)
    for (const fold of group.entityFolds) foldEntity(fold, tenant.history, tenant.run)
    if (!tenant.copyBack.hasRoom(group.keptBytes)) {
      tenant.rollback()
      return failure(group.tenant, {
        code: 'SQLITE_FULL',
        message: 'no disk space to checkpoint the write-ahead log',
      })
    }
    failpoint('writer:before-commit')
    tenant.commit()
    failpoint('writer:after-commit')
  } catch (error) {
    tenant.rollback()
    return failure(group.tenant, error)
  }
  return { kind: 'written', tenant: group.tenant, chunks, logBytes }
}

function failure(tenant: string, error: unknown): FromWriter & { readonly kind: 'failed' } {
  const { code = 'UNKNOWN', message } = error as { code?: string; message: string }
  return { kind: 'failed', tenant, code, message }
}
