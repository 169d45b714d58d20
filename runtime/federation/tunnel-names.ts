/**
 * To whom the names of gateways belong that open tunnels to this one: the first who comes with a name has it, and proves it by the
 * same secret from then on. The file holds hashes only; it is on disk before a name is believed. Names are given back by
 * whoever may write that file, and by nobody who comes over the network.
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
import { refuseOpenMode } from '#config/load/http-token.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { flush, replaceSecret } from '#store/file/durable-files.ts'

/** A name that somebody has. */
export interface TunnelName {
  readonly alias: string
  /** Of the secret: SHA-256 in hexadecimal digits. */
  readonly hash: string
  /** When (DateTime) and from which address it was taken. */
  readonly since: string
  readonly from: string
}

export interface TunnelNames {
  /**
   * Whose name it is, if it is that of somebody else; else it belongs to this secret, on disk.
   * @throws http.busy when there is no room for another name; config.invalid when the file cannot be used.
   */
  prove(alias: string, secret: string, from: string): TunnelName | undefined
}

/** Where a data folder has them. */
export const tunnelNamesFile = (dataFolder: string): string => join(dataFolder, 'tunnel-names')

export function createTunnelNames(file: string, clock: Pick<Clock, 'now'>): TunnelNames {
  let known: ReadonlyMap<string, TunnelName> = new Map()
  let stamp: string | undefined

  return Object.freeze({
    prove(alias, secret, from) {
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
        throw new GatewayError('http.busy', `${known.size} names of gateways are taken; release some`)
      const one = { alias, hash: hash.toString('hex'), since: msToDateTime(clock.now()), from }
      append(file, lineOf(one))
      known = new Map(known).set(alias, one)
      stamp = stampOf(file)
      return undefined
    },
  } satisfies TunnelNames)
}

/** All names that are taken, in order of time. @throws config.invalid when the file cannot be read or understood. */
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
    // What a power cut left of a last line was not believed yet.
    const lines = readFileSync(descriptor, 'utf8').split('\n').slice(0, -1)
    return lines.map((line, i) => {
      const [alias = '', hash = '', since = '', from = '', ...more] = line.split(' ')
      if (alias === '' || !/^[0-9a-f]{64}$/.test(hash) || from === '' || more.length > 0)
        throw invalid(`line ${i + 1} is no name with its hash, time and address`)
      return { alias, hash, since, from }
    })
  } finally {
    closeSync(descriptor)
  }
}

/** Gives a name back: the next who comes with it has it. False when nobody has it. @throws config.invalid */
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
    // What a power cut left of a line goes.
    const bytes = readFileSync(descriptor)
    ftruncateSync(descriptor, bytes.lastIndexOf(0x0a) + 1)
    writeSync(descriptor, line)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  if (isNew) flush(dirname(file))
}
