/**
 * The thread that makes one backup and ends: copying and reading through take as long as the disk wants, and neither the
 * main thread nor the writer waits for it. It says how far it is, at the end what was made, or why nothing was.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { assert, isGatewayError, toGatewayError } from '#base/register/errors.ts'
import { systemClock } from '#base/time/clock.ts'
import { type BackupOptions, makeBackup } from './backup.ts'
import type { FromBackup } from './backup-starter.ts'

assert(parentPort !== null, 'backups are made by a worker thread')
const port = parentPort
const say = (message: FromBackup): void => port.postMessage(message)

try {
  const backup = await makeBackup(workerData as BackupOptions, {
    clock: systemClock,
    onProgress: (progress) => say({ kind: 'progress', progress }),
  })
  say({ kind: 'made', backup })
} catch (error) {
  const { code, message, details } = isGatewayError(error) ? error : toGatewayError(error)
  say({ kind: 'failed', code, message, details })
}
