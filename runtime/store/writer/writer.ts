/**
 * Controls the writer thread from the main thread: opens tenants, sends one group at a time per tenant, and
 * reports the outcome of each. When the writer dies, `onDeath` ends the process; systemd restarts it, and the
 * log makes that safe.
 */
import { startLimitedWorker } from '#base/process/limited-worker.ts'
import { assert, GatewayError } from '#base/register/errors.ts'
import type { Synchronous } from '#store/file/database.ts'
import type { FromWriter, GroupMessage, ToWriter } from './writer-protocol.ts'

export interface WriteOutcome {
  readonly chunks: number
  readonly logBytes: number
}

export interface Writer {
  /** @throws store.failed, store.full when the file cannot be opened for writing. */
  open(tenant: string, file: string, synchronous: Synchronous): Promise<void>
  /** Sends one group; calls `done` when the group is on disk, or with the error when none of it is. */
  write(
    group: Omit<GroupMessage, 'kind'>,
    done: (error: GatewayError | undefined, outcome: WriteOutcome) => void,
  ): void
  /**
   * Checkpoints and ends the WAL of a file that another connection writes. Resolves to false when the file
   * was in use, so that the WAL continues. Only one call per file at a time.
   * @throws store.full, store.unwritable, store.failed.
   */
  copyBack(file: string): Promise<boolean>
  /** Checkpoints and closes one tenant's file. */
  close(tenant: string): Promise<void>
  /** Ends the thread. */
  end(): Promise<void>
}

const nothing: WriteOutcome = { chunks: 0, logBytes: 0 }

export function createWriter(onDeath: (error: unknown) => void): Writer {
  const file = import.meta.url.endsWith('.ts') ? './writer-thread.ts' : './writer-thread.js'
  const worker = startLimitedWorker(new URL(file, import.meta.url), {
    resourceLimits: { maxYoungGenerationSizeMb: 12, maxOldGenerationSizeMb: 128 },
  })
  const waiting = new Map<string, (message: FromWriter) => void>()
  let ending = false
  worker.on('message', (message: FromWriter) => {
    const answer = waiting.get(message.tenant)
    waiting.delete(message.tenant)
    answer?.(message)
  })
  worker.on('error', (error) => onDeath(error))
  worker.on('exit', (code) => {
    if (!ending) onDeath(new GatewayError('store.failed', `the writer thread ended with code ${code}`))
  })
  const request = (
    message: ToWriter,
    answer: (message: FromWriter) => void,
    transfer: ArrayBuffer[] = [],
  ): void => {
    assert(!waiting.has(message.tenant), 'one message per tenant is in flight')
    // Throws for a row that cannot be cloned; nothing was sent then.
    worker.postMessage(message, transfer)
    waiting.set(message.tenant, answer)
  }
  return Object.freeze({
    open: (tenant, path, synchronous) =>
      new Promise((resolve, reject) => {
        request({ kind: 'open', tenant, file: path, synchronous }, (message) => {
          if (message.kind === 'opened') resolve()
          else reject(writeError(message))
        })
      }),
    write(group, done) {
      const transfer = group.blobs.map((blob) => blob.triples.buffer as ArrayBuffer)
      for (const fold of group.streamFolds) {
        transfer.push(
          fold.times.buffer as ArrayBuffer,
          fold.modified.buffer as ArrayBuffer,
          fold.values.buffer as ArrayBuffer,
        )
      }
      request(
        { kind: 'group', ...group },
        (message) => {
          if (message.kind === 'written') done(undefined, message)
          else done(writeError(message), nothing)
        },
        transfer,
      )
    },
    copyBack: (path) =>
      new Promise((resolve, reject) => {
        request({ kind: 'copyBack', tenant: path }, (message) => {
          if (message.kind === 'copied') resolve(message.isEnded)
          else reject(writeError(message))
        })
      }),
    close: (tenant) => new Promise((resolve) => request({ kind: 'close', tenant }, () => resolve())),
    async end() {
      ending = true
      await worker.terminate()
    },
  } satisfies Writer)
}

function writeError(message: FromWriter): GatewayError {
  const { code, message: text } =
    message.kind === 'failed' ? message : { code: 'UNKNOWN', message: message.kind }
  const isDamaged = code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')
  const isUnwritable = /^SQLITE_(IOERR|READONLY|CANTOPEN|PROTOCOL)/.test(code)
  const otherwise = isUnwritable ? 'store.unwritable' : 'store.failed'
  const entry = code === 'SQLITE_FULL' ? 'store.full' : isDamaged ? 'store.corrupt' : otherwise
  return new GatewayError(entry, `the disk reported an error: ${text}`, { code })
}
