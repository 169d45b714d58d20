/**
 * The identity of this gateway: made once, kept in the data folder, never used twice. Sessions at other brokers go
 * by it, so that a restart finds them again.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Sixteen hexadecimal digits. The file is made when it is absent. */
export function gatewayId(dataFolder: string): string {
  const file = join(dataFolder, 'gateway-id')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  const id = randomBytes(8).toString('hex')
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
  writeFileSync(file, `${id}\n`, { mode: 0o644, flag: 'wx' })
  return id
}
