/**
 * `selvedge restore`: fills an empty data folder from a backup. The exit code is 0 when the restored data is
 * on disk. An interrupted restore is repeated by the same command; no gateway starts on the folder before it
 * is complete.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { GatewayError } from '#base/register/errors.ts'
import { systemClock } from '#base/time/clock.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import type { GivenOptions } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { type Backup, listBackups, manifestName, newestVerified } from '#store/backup/manifest.ts'
import { restoreFolder } from '#store/backup/restore.ts'
import { megabytes } from './backup-command.ts'
import { createProgress, writeResult } from './transfer.ts'

export async function restore(given: GivenOptions, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const { data } = loaded.settings
  const from = backupAt(given.text('from') ?? loaded.settings.backup.folder, given.text('gateway'), terminal)
  const progress = createProgress(terminal, 'bytes')
  const manifest = restoreFolder(from, data, {
    now: systemClock.now(),
    onProgress: ({ doneBytes, ofBytes }) => progress.at(doneBytes, ofBytes),
  })
  const bytes = manifest.tenants.reduce((sum, tenant) => sum + tenant.bytes, 0)
  const at = new Date(manifest.startedAt).toISOString()
  const count = manifest.tenants.length
  const tenants = count === 1 ? '1 tenant' : `${count} tenants`
  const words = `${data} was restored to its state at ${at}: ${tenants}, ${megabytes(bytes)}`
  const facts = { from, data, startedAt: at, tenants: manifest.tenants.map(({ name }) => name), bytes }
  return writeResult(given, terminal.out, { words, facts, failed: false })
}

/**
 * The path of a backup: the named backup, or the newest verified one in a folder. An unverified backup is
 * used only if there is no verified one, with a message.
 * @throws cli.usage if there is none, or if the folder contains backups of several gateways and none is named
 */
function backupAt(path: string, gateway: string | undefined, terminal: Terminal): string {
  const full = resolve(path)
  if (existsSync(join(full, manifestName))) return full
  const all = listBackups(full).filter(
    ({ manifest }) => (gateway ?? manifest.gatewayId) === manifest.gatewayId,
  )
  const [newest] = all
  if (newest === undefined)
    throw new GatewayError(
      'cli.usage',
      `--from: there is no backup in ${full}${gateway === undefined ? '' : ` of gateway ${gateway}`}`,
    )
  const gateways = [...Map.groupBy(all, ({ manifest }) => manifest.gatewayId)]
  if (gateways.length > 1) {
    const each = gateways.map(([id, [first]]) => `${id} (${first!.name})`).join(', ')
    throw new GatewayError(
      'cli.usage',
      `--from: ${full} contains backups of several gateways: ${each}; name one by --gateway`,
    )
  }
  const best = newestVerified(all)
  if (best !== newest) terminal.err(`${skippedText(newest, best)}\n`)
  return (best ?? newest).path
}

const skippedText = (newest: Backup, best: Backup | undefined): string =>
  best === undefined
    ? `${newest.name} was not verified when it was made (backup.verify), and there is no verified one`
    : `${newest.name} is newer, but was not verified when it was made; using ${best.name}. To use the newer one, name it by --from.`
