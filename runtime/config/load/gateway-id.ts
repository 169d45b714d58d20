/**
 * The identity of this gateway: generated once, stored in the data folder, unique. Sessions at other brokers
 * use it, so that the gateway resumes them after a restart.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The names of this gateway in Via chains, by tenant. */
export const viaAliases =
  (dataFolder: string) =>
  (tenant: string): string =>
    tenant === '' ? `selvedge-${gatewayId(dataFolder)}` : `selvedge-${gatewayId(dataFolder)}.${tenant}`

/** Sixteen hexadecimal digits. Creates the file if it is missing. */
export function gatewayId(dataFolder: string): string {
  const file = join(dataFolder, 'gateway-id')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  const id = randomBytes(8).toString('hex')
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
  writeFileSync(file, `${id}\n`, { mode: 0o644, flag: 'wx' })
  return id
}
