/**
 * `selvedge restore`: an empty data folder becomes the gateway that a backup was made of. Exit code 0 when all of it is on
 * disk; one that was cut short is begun again by the same command, and no gateway starts before it is through.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { GatewayError } from '#base/register/errors.ts'
import { systemClock } from '#base/time/clock.ts'
import { settingsOrTell } from '#cli/settings/settings-options.ts'
import type { Given } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { type Backup, listBackups, manifestName, newestVerified } from '#store/backup/manifest.ts'
import { restoreFolder } from '#store/backup/restore.ts'
import { megabytes } from './backup-command.ts'
import { createProgress, tellResult } from './transfer.ts'

export async function restore(given: Given, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrTell(given, terminal)
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
  const words = `${data} is as it was at ${at}: ${tenants}, ${megabytes(bytes)}`
  const facts = { from, data, startedAt: at, tenants: manifest.tenants.map(({ name }) => name), bytes }
  return tellResult(given, terminal.out, { words, facts, failed: false })
}

/**
 * The backup itself, or the newest verified one of a folder; one that nobody read through only where there is no other, and
 * that is said.
 * @throws cli.usage where there is none, or those of several gateways and none of them is named
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
      `--from: ${full} holds backups of several gateways: ${each}; name one by --gateway`,
    )
  }
  const best = newestVerified(all)
  if (best !== newest) terminal.err(`${passedOver(newest, best)}\n`)
  return (best ?? newest).path
}

const passedOver = (newest: Backup, best: Backup | undefined): string =>
  best === undefined
    ? `${newest.name} was not read through when it was made (backup.verify), and there is no verified one`
    : `${newest.name} is newer, but was not read through when it was made; ${best.name} is taken. Name it by --from to have it.`
