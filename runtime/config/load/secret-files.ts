/**
 * Reads secret files and CA bundles, and creates the HTTP token. The token is generated once and readable by
 * its owner only. A secret file that others can read is rejected, because the secret may be known.
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { getCACertificates } from 'node:tls'
import { GatewayError } from '#base/register/errors.ts'

/**
 * Returns the token of an existing file, or creates a new one of 192 bits with mode 0600. `created` is true
 * only when the file was created: only then may the token be shown.
 * @throws config.invalid if other users can access the file, or if it is empty or cannot be read or created.
 */
export function readOrCreateToken(file: string): { token: string; created: boolean } {
  const existing = readSecretFile(file)
  if (existing !== undefined) return { token: existing, created: false }
  const token = randomBytes(24).toString('base64url')
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const descriptor = openSync(file, 'wx', 0o600)
    writeSync(descriptor, `${token}\n`)
    fsyncSync(descriptor)
    closeSync(descriptor)
  } catch (error) {
    throw new GatewayError(
      'config.invalid',
      `${file} cannot be created: ${(error as Error).message}`,
      { file },
      error,
    )
  }
  return { token, created: true }
}

/**
 * Whether the file exists. An inaccessible file must not count as absent, because the gateway would then
 * require no credentials.
 * @throws config.invalid if that cannot be determined, for example in a folder without permission
 */
export function isThere(file: string): boolean {
  try {
    statSync(file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw unreadable(file, error)
  }
}

/** @throws config.invalid for bytes that are not UTF-8, since names and secrets would change. */
export function decodeText(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new GatewayError('config.invalid', `${file} must be text in UTF-8`, { file }, error)
  }
}

/** The error for a file that cannot be read; missing permission is not a mistake in the settings. */
export function unreadable(file: string, error: unknown): GatewayError {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EACCES' || code === 'EPERM')
    return new GatewayError('config.no-permission', `${file} cannot be read by this user`, { file }, error)
  return new GatewayError('config.invalid', `${file} cannot be read: ${message}`, { file }, error)
}

/**
 * The first line of a file that only its owner can access; undefined if the file does not exist.
 * @throws config.invalid if other users can access it, or if it is empty or cannot be read.
 */
export function readSecretFile(file: string): string | undefined {
  let descriptor: number
  try {
    descriptor = openSync(file, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw unreadable(file, error)
  }
  try {
    const facts = fstatSync(descriptor)
    if (!facts.isFile()) throw new GatewayError('config.invalid', `${file} must be a regular file`, { file })
    refuseOpenMode(file, facts.mode)
    const line = decodeText(file, readFileSync(descriptor)).split(/\r?\n/, 1)[0]!.trim()
    if (line === '') throw new GatewayError('config.invalid', `${file} is empty`, { file })
    return line
  } finally {
    closeSync(descriptor)
  }
}

/** Like `readSecretFile`, for a required file. @throws config.invalid also if it does not exist. */
export function requireSecretFile(file: string): string {
  const line = readSecretFile(file)
  if (line === undefined) throw new GatewayError('config.invalid', `${file} does not exist`, { file })
  return line
}

/**
 * Reads a required file with a password, again at each call. undefined without a file.
 * @throws config.invalid like `requireSecretFile`, at once and from each call.
 */
export function passwordReader(file: string | undefined): (() => string) | undefined {
  if (file === undefined) return undefined
  requireSecretFile(file)
  return () => requireSecretFile(file)
}

/**
 * Certificate authorities in PEM, as text. @throws config.invalid if the file cannot be read or contains
 * none.
 */
export function readAuthorities(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw unreadable(file, error)
  }
  if (!text.includes('-----BEGIN CERTIFICATE-----'))
    throw new GatewayError('config.invalid', `${file} must contain a certificate in PEM format`, { file })
  return text
}

/**
 * Certificate authorities of a file and of the system; undefined without a file, which means those of the
 * system.
 */
export function trustedWith(file: string | undefined): readonly string[] | undefined {
  return file === undefined ? undefined : [...getCACertificates('default'), readAuthorities(file)]
}

/** @throws config.invalid if anyone but the owner has any permission. */
export function refuseOpenMode(file: string, mode: number): void {
  if ((mode & 0o077) === 0) return
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  throw new GatewayError('config.invalid', `${file} has mode ${octal}; it must be 0600`, {
    file,
    mode: octal,
  })
}
