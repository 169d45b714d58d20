/**
 * The floor of authentication: which addresses are loopback, and the HTTP token in its file. The token is made once,
 * readable by its owner only; a file that others may read is refused, because its secret is none any more.
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
import { isLoopback } from '#base/load/loopback.ts'
import { GatewayError } from '#base/register/errors.ts'

/** Whether a listener at this host is reached from this machine only; 0.0.0.0 and :: are reached from everywhere. */
export function isLoopbackListener(host: string): boolean {
  return isLoopback(host) && host !== '::' && !host.startsWith('0.')
}

/**
 * The token of an existing file, else a new one of 192 bits, written with mode 0600. `created` is true once in the
 * life of the file: only then may the token be shown.
 * @throws config.invalid when the file is open to others, empty, or cannot be read or made.
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
      `${file} cannot be made: ${(error as Error).message}`,
      { file },
      error,
    )
  }
  return { token, created: true }
}

/**
 * Whether there is such a file. Nobody may take a file that cannot be seen for one that is absent: credentials would
 * not be asked for.
 * @throws config.invalid when that cannot be found out, as in a folder without permission
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

/** @throws config.invalid for what is not UTF-8, since names and secrets would change. */
export function decodeText(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new GatewayError('config.invalid', `${file} must be text in UTF-8`, { file }, error)
  }
}

/** The error for a file whose reading failed; missing permission is no mistake in the settings. */
export function unreadable(file: string, error: unknown): GatewayError {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EACCES' || code === 'EPERM')
    return new GatewayError('config.no-permission', `${file} cannot be read by this user`, { file }, error)
  return new GatewayError('config.invalid', `${file} cannot be read: ${message}`, { file }, error)
}

/**
 * The first line of a file that only its owner may read; undefined when there is no such file.
 * @throws config.invalid when others may read or write it, when it is empty, or cannot be read.
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
    if (!facts.isFile()) throw new GatewayError('config.invalid', `${file} is no file`, { file })
    refuseOpenMode(file, facts.mode)
    const line = decodeText(file, readFileSync(descriptor)).split(/\r?\n/, 1)[0]!.trim()
    if (line === '') throw new GatewayError('config.invalid', `${file} is empty`, { file })
    return line
  } finally {
    closeSync(descriptor)
  }
}

/** As `readSecretFile`, for a file that has to be there. @throws config.invalid also when it is absent. */
export function requireSecretFile(file: string): string {
  const line = readSecretFile(file)
  if (line === undefined) throw new GatewayError('config.invalid', `${file} does not exist`, { file })
  return line
}

/** Certificate authorities in PEM, as text. @throws config.invalid when the file cannot be read or holds none. */
export function readAuthorities(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw unreadable(file, error)
  }
  if (!text.includes('-----BEGIN CERTIFICATE-----'))
    throw new GatewayError('config.invalid', `${file} holds no certificate in PEM`, { file })
  return text
}

/** Those of a file beside those of the system; undefined where there is no file: those of the system alone. */
export function trustedWith(file: string | undefined): readonly string[] | undefined {
  return file === undefined ? undefined : [...getCACertificates('default'), readAuthorities(file)]
}

/** @throws config.invalid when anybody but the owner has any right. */
export function refuseOpenMode(file: string, mode: number): void {
  if ((mode & 0o077) === 0) return
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  throw new GatewayError('config.invalid', `${file} has mode ${octal}; it must be 0600`, {
    file,
    mode: octal,
  })
}
