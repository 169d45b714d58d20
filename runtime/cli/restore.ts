/**
 * `selvedge restore`: an empty data folder becomes the gateway that a backup was made of. Exit code 0 when all of it is on
 * disk; one that was cut short is begun again by the same command, and no gateway starts before it is through.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { systemClock } from '#base/clock.ts'
import { GatewayError } from '#base/errors.ts'
import { listBackups, manifestName } from '#store/manifest.ts'
import { restoreFolder } from '#store/restore.ts'
import type { Given } from './arguments.ts'
import { megabytes } from './backup.ts'
import { settingsOrTell } from './settings-options.ts'
import { exitCodes, type Terminal } from './terminal.ts'
import { createProgress, tellResult } from './transfer.ts'

export async function restore(given: Given, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrTell(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const { data } = loaded.settings
  const from = backupAt(given.text('from') ?? loaded.settings.backup.folder)
  const progress = createProgress(terminal, 'bytes')
  const manifest = restoreFolder(from, data, {
    now: systemClock.now(),
    onProgress: ({ doneBytes, ofBytes }) => progress.at(doneBytes, ofBytes),
  })
  const bytes = manifest.tenants.reduce((sum, tenant) => sum + tenant.bytes, 0)
  const at = new Date(manifest.startedAt).toISOString()
  const count = manifest.tenants.length
  const tenants = count === 1 ? '1 tenant' : `${count} tenants`
  const words = `${data} is as it was at ${at}: ${tenants}, ${megabytes(bytes)}`
  const facts = { from, data, startedAt: at, tenants: manifest.tenants.map(({ name }) => name), bytes }
  return tellResult(given, terminal.out, { words, facts, failed: false })
}

/** The backup itself, or the newest of a folder. @throws cli.usage */
function backupAt(path: string): string {
  const full = resolve(path)
  if (existsSync(join(full, manifestName))) return full
  const [newest] = listBackups(full)
  if (newest === undefined) throw new GatewayError('cli.usage', `--from: there is no backup in ${full}`)
  return newest.path
}
