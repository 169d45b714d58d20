/**
 * Starts the backup thread from the main thread, one backup at a time, and reports its outcome.
 */
import type { Worker } from 'node:worker_threads'
import { startLimitedWorker } from '#base/process/limited-worker.ts'
import { type ErrorCode, GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { BackupOptions, BackupProgress } from './backup.ts'
import type { Backup } from './manifest.ts'

export type FromBackup =
  | { readonly kind: 'progress'; readonly progress: BackupProgress }
  | { readonly kind: 'made'; readonly backup: Backup }
  | {
      readonly kind: 'failed'
      readonly code: ErrorCode
      readonly message: string
      readonly details: Readonly<Record<string, unknown>>
    }

export interface BackupMaker {
  /** @throws store.full, store.corrupt, store.failed; store.closed when it was ended. */
  make(options: BackupOptions, onProgress: (progress: BackupProgress) => void): Promise<Backup>
  /** Ends the running backup. The next backup deletes the partial files it leaves. */
  end(): Promise<void>
}

export function createBackupMaker(): BackupMaker {
  const file = import.meta.url.endsWith('.ts') ? './backup-thread.ts' : './backup-thread.js'
  let worker: Worker | undefined
  return Object.freeze({
    make(options, onProgress) {
      return new Promise((resolve, reject) => {
        const made = startLimitedWorker(new URL(file, import.meta.url), {
          workerData: options,
          resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 },
        })
        worker = made
        made.on('message', (message: FromBackup) => {
          if (message.kind === 'progress') onProgress(message.progress)
          else if (message.kind === 'made') resolve(message.backup)
          else reject(new GatewayError(message.code, message.message, message.details))
        })
        made.on('error', (error: unknown) => reject(toGatewayError(error)))
        made.on('exit', () => {
          worker = undefined
          reject(new GatewayError('store.closed', 'the backup was cancelled'))
        })
      })
    },
    async end() {
      await worker?.terminate()
    },
  } satisfies BackupMaker)
}
