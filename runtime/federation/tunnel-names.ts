/**
 * Owners of the names of gateways that open tunnels to this one. The first gateway to use a name owns it and
 * proves it with the same secret from then on. The file holds only hashes and is on disk before a name is
 * accepted. Only a user who may write that file can release a name; nobody can over the network.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import { refuseOpenMode } from '#config/load/secret-files.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { flush, replaceSecret } from '#store/file/durable-files.ts'

/** A name and its owner. */
export interface TunnelName {
  readonly alias: string
  /** SHA-256 of the secret, in hexadecimal. */
  readonly hash: string
  /** Time (DateTime) and address of the first use. */
  readonly since: string
  readonly from: string
}

/** The file in a data folder. */
export const tunnelNamesFile = (dataFolder: string): string => join(dataFolder, 'tunnel-names')

export type TunnelNames = ReturnType<typeof createTunnelNames>

export function createTunnelNames(file: string, clock: Pick<Clock, 'now'>) {
  let known: ReadonlyMap<string, TunnelName> = new Map()
  let stamp: string | undefined

  return Object.freeze({
    /**
     * Returns the owner if the name belongs to another gateway; otherwise the name is stored for this secret.
     *
     * @throws http.busy if the limit of names is reached; config.invalid if the file cannot be used.
     */
    prove(alias: string, secret: string, from: string): TunnelName | undefined {
      const now = stampOf(file)
      if (now !== stamp || now === undefined) known = byAlias(readTunnelNames(file))
      stamp = now
      const hash = createHash('sha256').update(secret).digest()
      const owner = known.get(alias)
      if (owner !== undefined) {
        const theirs = Buffer.from(owner.hash, 'hex')
        return theirs.length === hash.length && timingSafeEqual(theirs, hash) ? undefined : owner
      }
      if (known.size >= limits.tunnelNamesMax.value)
        throw new GatewayError('http.busy', `${known.size} gateway names are in use; release one of them`)
      const one = { alias, hash: hash.toString('hex'), since: msToDateTime(clock.now()), from }
      append(file, lineOf(one))
      known = new Map(known).set(alias, one)
      stamp = stampOf(file)
      return undefined
    },
  })
}

/** All names in order of time. @throws config.invalid if the file cannot be read or parsed. */
export function readTunnelNames(file: string): readonly TunnelName[] {
  const invalid = (why: string, cause?: unknown): GatewayError =>
    new GatewayError('config.invalid', `${file} ${why}`, { file }, cause)
  let descriptor: number
  try {
    descriptor = openSync(file, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw invalid(`cannot be read: ${(error as Error).message}`, error)
  }
  try {
    refuseOpenMode(file, fstatSync(descriptor).mode)
    // An incomplete last line, left by a power cut, was never accepted.
    const lines = readFileSync(descriptor, 'utf8').split('\n').slice(0, -1)
    return lines.map((line, i) => {
      const [alias = '', hash = '', since = '', from = '', ...more] = line.split(' ')
      if (alias === '' || !/^[0-9a-f]{64}$/.test(hash) || from === '' || more.length > 0)
        throw invalid(`line ${i + 1}: expected a name, a hash, a time and an address`)
      return { alias, hash, since, from }
    })
  } finally {
    closeSync(descriptor)
  }
}

/** Releases a name for the next gateway that uses it; false if it has no owner. @throws config.invalid */
export function releaseTunnelName(file: string, alias: string): boolean {
  const all = readTunnelNames(file)
  const left = all.filter((one) => one.alias !== alias)
  if (left.length === all.length) return false
  replaceSecret(file, left.map(lineOf).join(''))
  return true
}

const lineOf = ({ alias, hash, since, from }: TunnelName): string => `${alias} ${hash} ${since} ${from}\n`

const byAlias = (all: readonly TunnelName[]): ReadonlyMap<string, TunnelName> =>
  new Map(all.map((one) => [one.alias, one]))

function stampOf(file: string): string | undefined {
  const facts = statSync(file, { throwIfNoEntry: false })
  return facts === undefined ? undefined : `${facts.mtimeMs} ${facts.size} ${facts.ino}`
}

function append(file: string, line: string): void {
  const isNew = statSync(file, { throwIfNoEntry: false }) === undefined
  const descriptor = openSync(file, 'a+', 0o600)
  try {
    // Removes an incomplete line left by a power cut.
    const bytes = readFileSync(descriptor)
    ftruncateSync(descriptor, bytes.lastIndexOf(0x0a) + 1)
    writeSync(descriptor, line)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  if (isNew) flush(dirname(file))
}
