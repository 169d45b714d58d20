/**
 * User names and passwords of MQTT clients: a file with one `user:scrypt$N$r$p$salt$hash` per line, which
 * only its owner may read. Each password is hashed once; after that its keyed digest is compared, so that a
 * thousand devices can reconnect at once cheaply. A changed file is read again at the next login. If it
 * cannot be read, the last valid content stays in use. The first start with a public listener creates one
 * user here.
 */
import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { decodeText, isThere, refuseOpenMode, unreadable } from '#config/load/secret-files.ts'
import { replaceSecret } from '#store/file/durable-files.ts'

/** Cost of a new hash: 16 MB and about 50 ms on a board (RFC 7914). */
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
  /**
   * True when the password belongs to the user.
   * @throws mqtt.ceiling when too many logins are queued.
   */
  verify(user: string, password: Uint8Array): Promise<boolean>
}

/**
 * Opens an existing file.
 * @throws config.invalid when the file cannot be read, is readable for others, or has a malformed line; the
 * message names it.
 */
export function openPasswordFile(file: string, { clock, log }: { clock: Clock; log: Log }): Passwords {
  let { entries, stamp } = read(file)
  let checkedAt = clock.monotonic()
  const nobody = parseEntry(
    `scrypt$${cost.N}$${cost.r}$${cost.p}$${randomText(16)}$${randomText(hashBytes)}`,
  )!
  const key = randomBytes(32)
  /** Digests of passwords already hashed, each with the line it was checked against. */
  const known = new Map<string, { readonly line: string; readonly isRight: boolean }>()
  const checking = new Map<string, Promise<boolean>>()
  const waiting: (() => void)[] = []
  let hashing = 0

  function reload(): void {
    if (clock.monotonic() - checkedAt < reloadMs) return
    checkedAt = clock.monotonic()
    try {
      if (stampOf(file) !== stamp) ({ entries, stamp } = read(file))
    } catch (error) {
      log.error('mqtt.passwords-unreadable', { file, error: toGatewayError(error).message })
    }
  }

  async function check(entry: Entry | undefined, password: Uint8Array): Promise<boolean> {
    if (hashing < limits.passwordsCheckedMax.value) hashing++
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      // An unknown user costs as much time as a known one, so that timing reveals nothing.
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
      const found = checking.get(digest)
      if (found !== undefined) return found
      if (checking.size >= limits.passwordsWaitingMax.value) {
        throw new GatewayError('mqtt.ceiling', 'too many password checks are queued; try again later')
      }
      const result = check(entry, password)
      checking.set(digest, result)
      try {
        const isRight = await result
        remember(digest, line, isRight)
        return isRight
      } finally {
        checking.delete(digest)
      }
    },
  } satisfies Passwords)
}

/**
 * Adds a user to a file, or changes the user's password; creates the file if absent.
 * @throws cli.usage when the name is empty or has a colon or control character, or the password is empty;
 * config.invalid as in `openPasswordFile`.
 */
export async function addUser(file: string, user: string, password: string): Promise<'added' | 'changed'> {
  if (!/^[^:\u0000-\u001f]{1,256}$/.test(user)) {
    throw new GatewayError(
      'cli.usage',
      'a user name must have 1 to 256 characters, without colons and control characters',
    )
  }
  if (password === '') throw new GatewayError('cli.usage', 'a password must have at least one character')
  const salt = randomBytes(16)
  const hash = await derive(Buffer.from(password), salt, cost)
  const { N, r, p } = cost
  const line = `scrypt$${N}$${r}$${p}$${salt.toString('base64')}$${hash.toString('base64')}`
  const entries = isThere(file) ? read(file).entries : new Map<string, Pick<Entry, 'text'>>()
  const before = entries.has(user)
  write(file, new Map<string, Pick<Entry, 'text'>>(entries).set(user, { text: line }))
  return before ? 'changed' : 'added'
}

/**
 * Removes a user; false when the file has no such user.
 * @throws config.invalid as in `openPasswordFile`.
 */
export function removeUser(file: string, user: string): boolean {
  const { entries } = read(file)
  if (!entries.delete(user)) return false
  write(file, entries)
  return true
}

/**
 * Names of the users in a file, in file order.
 * @throws config.invalid as in `openPasswordFile`.
 */
export const listUsers = (file: string): string[] => [...read(file).entries.keys()]

/** Creates a file with one user and a random password when there is none; only then returns the password. */
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
        throw invalid(
          `line ${index + 1} is not of the form user:scrypt$...; add users with \`selvedge users\``,
        )
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
  // Memory grows with N times r, so a line must not require more than a board has.
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
