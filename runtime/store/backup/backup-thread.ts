/**
 * The worker thread that makes one backup and exits. Copying and verifying take as long as the disk needs,
 * and neither the main thread nor the writer waits for them. It reports its progress, and finally the backup
 * or the error.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { assert, isGatewayError, toGatewayError } from '#base/register/errors.ts'
import { systemClock } from '#base/time/clock.ts'
import { type BackupOptions, makeBackup } from './backup.ts'
import type { FromBackup } from './backup-starter.ts'

assert(parentPort !== null, 'backups are made by a worker thread')
const port = parentPort
const post = (message: FromBackup): void => port.postMessage(message)

try {
  const backup = await makeBackup(workerData as BackupOptions, {
    clock: systemClock,
    onProgress: (progress) => post({ kind: 'progress', progress }),
  })
  post({ kind: 'made', backup })
} catch (error) {
  const { code, message, details } = isGatewayError(error) ? error : toGatewayError(error)
  post({ kind: 'failed', code, message, details })
}
