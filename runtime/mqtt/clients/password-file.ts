/**
 * User names and passwords of MQTT clients: one `user:scrypt$N$r$p$salt$hash` a line, in a file that only its owner
 * may read. A password is hashed once; after that its keyed digest is compared, so that a thousand devices that come
 * back together cost nothing. A changed file is read again at the next login; one that cannot be read leaves the last
 * good one in force.
 */
import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { decodeText, isThere, refuseOpenMode, unreadable } from '#config/load/http-token.ts'
import { replaceSecret } from '#store/file/durable-files.ts'

/** Cost of a new hash: 16 MB and some 50 ms on a board (RFC 7914). */
const cost = { N: 16_384, r: 8, p: 1 } as const
const hashBytes = 32
const reloadMs = 1000

interface Entry {
  readonly text: string
  readonly N: number
  readonly r: number
  readonly p: number
  readonly salt: Buffer
  readonly hash: Buffer
}

export interface Passwords {
  /** Whether the password is the user's. @throws mqtt.ceiling when too many logins wait. */
  verify(user: string, password: Uint8Array): Promise<boolean>
}

/**
 * Opens an existing file.
 * @throws config.invalid when it cannot be read, others may read it, or a line is malformed; the message names it.
 */
export function openPasswordFile(file: string, { clock, log }: { clock: Clock; log: Log }): Passwords {
  let { entries, stamp } = read(file)
  let lookedAt = clock.monotonic()
  const nobody = parseEntry(
    `scrypt$${cost.N}$${cost.r}$${cost.p}$${randomText(16)}$${randomText(hashBytes)}`,
  )!
  const key = randomBytes(32)
  /** Digests of passwords that were hashed, with the line they were judged by. */
  const known = new Map<string, { readonly line: string; readonly isRight: boolean }>()
  const judging = new Map<string, Promise<boolean>>()
  const waiting: (() => void)[] = []
  let hashing = 0

  function reload(): void {
    if (clock.monotonic() - lookedAt < reloadMs) return
    lookedAt = clock.monotonic()
    try {
      if (stampOf(file) !== stamp) ({ entries, stamp } = read(file))
    } catch (error) {
      log.error('mqtt.passwords-unreadable', { file, error: toGatewayError(error).message })
    }
  }

  async function judge(entry: Entry | undefined, password: Uint8Array): Promise<boolean> {
    if (hashing < limits.passwordsCheckedMax.value) hashing++
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      // An unknown user costs as much as a known one, so that the time tells nothing.
      const { salt, hash, N, r, p } = entry ?? nobody
      return timingSafeEqual(await derive(password, salt, { N, r, p }), hash) && entry !== undefined
    } finally {
      const next = waiting.shift()
      if (next === undefined) hashing--
      else next()
    }
  }

  function remember(digest: string, line: string, isRight: boolean): void {
    if (known.size >= limits.passwordsKnownMax.value) known.delete(known.keys().next().value!)
    known.set(digest, { line, isRight })
  }

  return Object.freeze({
    async verify(user, password) {
      reload()
      const entry = entries.get(user)
      const line = entry?.text ?? ''
      const digest = createHmac('sha256', key)
        .update(`${user.length}:${user}${line}`)
        .update(password)
        .digest('hex')
      const before = known.get(digest)
      if (before?.line === line) return before.isRight
      const found = judging.get(digest)
      if (found !== undefined) return found
      if (judging.size >= limits.passwordsWaitingMax.value) {
        throw new GatewayError('mqtt.ceiling', 'too many logins wait for their password to be checked')
      }
      const judged = judge(entry, password)
      judging.set(digest, judged)
      try {
        const isRight = await judged
        remember(digest, line, isRight)
        return isRight
      } finally {
        judging.delete(digest)
      }
    },
  } satisfies Passwords)
}

/**
 * Adds a user to a file, which is made when there is none, or gives one another password.
 * @throws cli.usage when the name has a colon, a control character or no character, or the password none;
 * config.invalid as `openPasswordFile`.
 */
export async function addUser(file: string, user: string, password: string): Promise<'added' | 'changed'> {
  if (!/^[^:\u0000-\u001f]{1,256}$/.test(user)) {
    throw new GatewayError(
      'cli.usage',
      'a user name has 1 to 256 characters, no colon and no control character',
    )
  }
  if (password === '') throw new GatewayError('cli.usage', 'a password has at least one character')
  const salt = randomBytes(16)
  const hash = await derive(Buffer.from(password), salt, cost)
  const { N, r, p } = cost
  const line = `scrypt$${N}$${r}$${p}$${salt.toString('base64')}$${hash.toString('base64')}`
  const entries = isThere(file) ? read(file).entries : new Map<string, Pick<Entry, 'text'>>()
  const before = entries.has(user)
  write(file, new Map<string, Pick<Entry, 'text'>>(entries).set(user, { text: line }))
  return before ? 'changed' : 'added'
}

/** Removes a user; false when the file has no such user. @throws config.invalid as `openPasswordFile`. */
export function removeUser(file: string, user: string): boolean {
  const { entries } = read(file)
  if (!entries.delete(user)) return false
  write(file, entries)
  return true
}

/** Names of the users in a file, in its order. @throws config.invalid as `openPasswordFile`. */
export const listUsers = (file: string): string[] => [...read(file).entries.keys()]

/** Makes a file with one user and a random password when there is none; the password is returned only then. */
export async function ensurePasswordFile(
  file: string,
): Promise<{ user: string; password: string } | undefined> {
  if (isThere(file)) return undefined
  const password = randomBytes(18).toString('base64url')
  await addUser(file, 'selvedge', password)
  return { user: 'selvedge', password }
}

function read(file: string): { entries: Map<string, Entry>; stamp: string } {
  const invalid = (why: string): GatewayError =>
    new GatewayError('config.invalid', `${file} ${why}`, { file })
  let descriptor: number
  try {
    descriptor = openSync(file, 'r')
  } catch (error) {
    throw unreadable(file, error)
  }
  try {
    const facts = fstatSync(descriptor)
    if (!facts.isFile()) throw invalid('must be a file')
    refuseOpenMode(file, facts.mode)
    const entries = new Map<string, Entry>()
    for (const [index, line] of decodeText(file, readFileSync(descriptor)).split(/\r?\n/).entries()) {
      if (line.trim() === '' || line.startsWith('#')) continue
      const colon = line.indexOf(':')
      const entry = colon < 1 ? undefined : parseEntry(line.slice(colon + 1))
      if (entry === undefined)
        throw invalid(`line ${index + 1} is not user:scrypt$...; add users by \`selvedge users\``)
      entries.set(line.slice(0, colon), entry)
    }
    return { entries, stamp: stampOf(file) }
  } finally {
    closeSync(descriptor)
  }
}

function stampOf(file: string): string {
  const { mtimeMs, size, ino } = statSync(file)
  return `${mtimeMs} ${size} ${ino}`
}

function parseEntry(text: string): Entry | undefined {
  const [kind, ...parts] = text.trim().split('$')
  const [N, r, p] = parts.slice(0, 3).map(Number)
  const salt = Buffer.from(parts[3] ?? '', 'base64')
  const hash = Buffer.from(parts[4] ?? '', 'base64')
  const isPower = N !== undefined && N >= 2 && Number.isInteger(Math.log2(N))
  if (kind !== 'scrypt' || parts.length !== 5 || !isPower || salt.length < 8 || hash.length !== hashBytes)
    return
  // Memory grows with N times r; a line must not be able to ask for more than a board has.
  if (!(Number.isInteger(r) && Number.isInteger(p) && r! >= 1 && p! >= 1 && p! <= 4 && N * r! <= 2 ** 19))
    return
  return { text, N, r: r!, p: p!, salt, hash }
}

function write(file: string, entries: ReadonlyMap<string, Pick<Entry, 'text'>>): void {
  const text = [...entries].map(([user, entry]) => `${user}:${entry.text}\n`).join('')
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  replaceSecret(file, text)
}

function derive(
  password: Uint8Array,
  salt: Uint8Array,
  { N, r, p }: { N: number; r: number; p: number },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, hashBytes, { N, r, p, maxmem: 256 * N * r }, (error, hash) => {
      if (error === null) resolve(hash)
      else reject(error)
    })
  })
}

const randomText = (bytes: number): string => randomBytes(bytes).toString('base64')
