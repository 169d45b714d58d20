/**
 * `selvedge backup`: requests a backup from a running gateway, which writes it to the folder of its settings;
 * or backs up the data folder of this machine, even while a gateway writes to it. The exit code is 0 when the
 * backup is on disk.
 */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type ErrorCode, GatewayError, isGatewayError } from '#base/register/errors.ts'
import { version } from '#base/register/version.ts'
import { systemClock } from '#base/time/clock.ts'
import { findGateway, refusalOf } from '#cli/gateway/running-gateway.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import { type GivenOptions, table } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { makeBackup } from '#store/backup/backup.ts'
import { listBackups, manifestName } from '#store/backup/manifest.ts'
import { lockUnlessInUse } from '#store/file/folder-lock.ts'
import { createProgress, writeResult } from './transfer.ts'

/** The reported facts of a backup. */
interface View {
  readonly path: string
  readonly bytes: number
  readonly startedAt: string
  readonly verified: boolean
}

export async function backup(given: GivenOptions, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const { settings } = loaded
  if (given.has('list')) return listAll(given, terminal, settings.backup.folder)
  const made =
    given.text('to') === undefined
      ? ((await requestBackup(given, settings)) ?? (await readFolder(given, settings, terminal)))
      : await readFolder(given, settings, terminal)
  const words = `${made.path}: ${megabytes(made.bytes)}${made.verified ? ', verified' : ''}`
  return writeResult(given, terminal.out, { words, facts: made, failed: false })
}

/**
 * Undefined if no gateway runs on the data folder; a gateway that responds on the default port may be another
 * one.
 */
async function requestBackup(given: GivenOptions, settings: Settings): Promise<View | undefined> {
  const unlock = given.text('url') === undefined ? lockUnlessInUse(settings.data) : undefined
  unlock?.()
  if (unlock !== undefined) return undefined
  try {
    const gateway = await findGateway(given, settings)
    const answer = await gateway.request('/selvedge/v1/backups', {
      method: 'POST',
      deadlineMs: 24 * 3_600_000,
    })
    if (answer.status !== 201) throw refusalOf(answer, 'requesting a backup')
    return JSON.parse(answer.text) as View
  } catch (error) {
    const isAbsent = isGatewayError(error) && absentCodes.includes(error.code)
    if (isAbsent && given.text('url') === undefined) return undefined
    throw error
  }
}

/** Errors that mean: the settings contain no HTTP port, or no gateway responds there. */
const absentCodes: readonly ErrorCode[] = ['cli.usage', 'cli.no-answer', 'cli.no-gateway']

async function readFolder(given: GivenOptions, settings: Settings, terminal: Terminal): Promise<View> {
  if (given.text('url') !== undefined)
    throw new GatewayError('cli.usage', '--to is for the data folder of this machine, without --url')
  const { data, backup, disk } = settings
  const to = given.text('to')
  if (to !== undefined) assertFree(to)
  const progress = createProgress(terminal, 'bytes')
  const unlock = lockUnlessInUse(data)
  try {
    const { path, manifest } = await makeBackup(
      {
        dataFolder: data,
        folder: to ?? backup.folder,
        // A manually requested copy is always verified.
        verify: to !== undefined || backup.verify,
        keep: to === undefined ? backup.keep : undefined,
        version,
        sparedBytes: disk.reserveBytes,
        isGentle: unlock === undefined,
      },
      { clock: systemClock, onProgress: ({ doneBytes, ofBytes }) => progress.at(doneBytes, ofBytes) },
    )
    return {
      path,
      bytes: manifest.tenants.reduce((sum, { bytes }) => sum + bytes, 0),
      startedAt: new Date(manifest.startedAt).toISOString(),
      verified: manifest.verified,
    }
  } finally {
    unlock?.()
  }
}

/** @throws cli.usage if the path is a file or itself a backup */
function assertFree(folder: string): void {
  const facts = statSync(folder, { throwIfNoEntry: false })
  if (facts !== undefined && !facts.isDirectory())
    throw new GatewayError('cli.usage', `--to expects a folder, but ${folder} is a file`)
  if (existsSync(join(folder, manifestName)))
    throw new GatewayError('cli.usage', `--to: ${folder} is itself a backup; name the folder for backups`)
}

function listAll(given: GivenOptions, terminal: Terminal, folder: string): number {
  const backups = listBackups(folder).map(({ name, path, manifest }) => ({
    name,
    path,
    gatewayId: manifest.gatewayId,
    startedAt: new Date(manifest.startedAt).toISOString(),
    verified: manifest.verified,
    version: manifest.version,
    bytes: manifest.tenants.reduce((sum, { bytes }) => sum + bytes, 0),
  }))
  const isShared = new Set(backups.map(({ gatewayId }) => gatewayId)).size > 1
  const rows = backups.map(({ name, gatewayId, verified, bytes }) => [
    name,
    ...(isShared ? [gatewayId] : []),
    `${megabytes(bytes)}${verified ? ', verified' : ''}`,
  ])
  const words = rows.length === 0 ? `There is no backup in ${folder}.` : table(rows).trimEnd()
  return writeResult(given, terminal.out, { words, facts: { folder, backups }, failed: rows.length === 0 })
}

export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`
