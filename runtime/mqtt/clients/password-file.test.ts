/** The password file: its mode, its lines, and the check of a login. */
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { createAuthentication } from './authentication.ts'
import { addUser, ensurePasswordFile, listUsers, openPasswordFile, removeUser } from './password-file.ts'

let folder: string
let file: string
let monotonic = 0
const lines: string[] = []
const clock = { now: () => 0, monotonic: () => monotonic }
const ports = { clock, log: createLog({ level: 'debug', clock, write: (line) => lines.push(line) }) }

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-'))
  file = join(folder, 'passwords')
  lines.length = 0
})

afterEach(() => rmSync(folder, { recursive: true }))

const bytes = (text: string): Uint8Array => Buffer.from(text)

describe('the file', () => {
  it('is created with mode 0600 and contains no password', async () => {
    expect(await addUser(file, 'greenhouse', 'tomato')).toBe('added')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toMatch(/^greenhouse:scrypt\$16384\$8\$1\$[\w+/=]+\$[\w+/=]+\n$/)
    expect(readFileSync(file, 'utf8')).not.toContain('tomato')
  })

  it('belongs to the owner of its folder when root writes it', async () => {
    const isRoot = process.getuid!() === 0
    const [uid, gid] = isRoot ? [65_534, 65_534] : [process.getuid!(), process.getgid!()]
    chownSync(folder, uid, gid)
    await addUser(file, 'a', 'b')
    expect(statSync(file)).toMatchObject({ uid, gid })
  })

  it('is refused when others may read it', async () => {
    await addUser(file, 'a', 'b')
    chmodSync(file, 0o640)
    expect(() => openPasswordFile(file, ports)).toThrow(/0600/)
    await expect(addUser(file, 'c', 'd')).rejects.toThrow(/0600/)
  })

  it.each([
    'alice:secret',
    'no colon',
    ':scrypt$2$1$1$AAAAAAAAAAA=$x',
    'a:scrypt$16384$999999$1$AAAAAAAAAAAA$AAAA',
  ])('is refused with a line like %s, by its number', (line) => {
    writeFileSync(file, `# people\n\n${line}\n`, { mode: 0o600 })
    expect(() => openPasswordFile(file, ports)).toThrow(/line 3/)
  })

  it('keeps its other users when one is added, changed or removed', async () => {
    await addUser(file, 'a', '1')
    await addUser(file, 'b', '2')
    expect(await addUser(file, 'a', '3')).toBe('changed')
    expect(listUsers(file)).toEqual(['a', 'b'])
    expect([removeUser(file, 'b'), removeUser(file, 'b')]).toEqual([true, false])
    const passwords = openPasswordFile(file, ports)
    expect(await passwords.verify('a', bytes('3'))).toBe(true)
    expect(await passwords.verify('a', bytes('1'))).toBe(false)
  })

  it.each(['', 'a:b', 'a\nb', 'x'.repeat(257)])('accepts no user named %j', async (user) => {
    await expect(addUser(file, user, 'x')).rejects.toThrow(/user name/)
  })

  it('is created once with a password that is shown once', async () => {
    const made = await ensurePasswordFile(file)
    expect(await openPasswordFile(file, ports).verify(made!.user, bytes(made!.password))).toBe(true)
    expect(await ensurePasswordFile(file)).toBeUndefined()
  })
})

describe('a login', () => {
  it('is checked by user and password', async () => {
    await addUser(file, 'a', 'right')
    const passwords = openPasswordFile(file, ports)
    expect(await passwords.verify('a', bytes('right'))).toBe(true)
    expect(await passwords.verify('a', bytes('wrong'))).toBe(false)
    expect(await passwords.verify('b', bytes('right'))).toBe(false)
    expect(await passwords.verify('a', bytes(''))).toBe(false)
  })

  it('hashes each password once, however many logins arrive at the same time or later', async () => {
    await addUser(file, 'a', 'right')
    const passwords = openPasswordFile(file, ports)
    const cpuOf = async (logins: () => Promise<unknown>): Promise<number> => {
      const from = process.cpuUsage()
      await logins()
      const { user, system } = process.cpuUsage(from)
      return user + system
    }
    const one = await cpuOf(() => passwords.verify('a', bytes('wrong')))
    const many = await cpuOf(() =>
      Promise.all(Array.from({ length: 400 }, () => passwords.verify('a', bytes('right')))),
    )
    const again = await cpuOf(() =>
      Promise.all(
        Array.from({ length: 400 }, (_, n) => passwords.verify('a', bytes(n % 2 ? 'right' : 'wrong'))),
      ),
    )
    expect(many).toBeLessThan(one * 8)
    expect(again).toBeLessThan(one * 2)
  })

  it('is refused when too many different ones are queued', async () => {
    await addUser(file, 'a', 'right')
    const passwords = openPasswordFile(file, ports)
    const logins = Array.from({ length: 258 }, (_, n) => passwords.verify('a', bytes(`guess ${n}`)))
    const late = await Promise.allSettled(logins.slice(256))
    expect(late.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    void Promise.allSettled(logins)
  })

  it('notices a changed file after a second, and the old password no longer works', async () => {
    await addUser(file, 'a', 'old')
    const passwords = openPasswordFile(file, ports)
    expect(await passwords.verify('a', bytes('old'))).toBe(true)
    await addUser(file, 'a', 'new')
    monotonic += 1001
    expect(await passwords.verify('a', bytes('new'))).toBe(true)
    expect(await passwords.verify('a', bytes('old'))).toBe(false)
  })

  it('uses the last valid file when the new one is broken', async () => {
    await addUser(file, 'a', 'right')
    const passwords = openPasswordFile(file, ports)
    writeFileSync(file, 'broken\n')
    monotonic += 1001
    expect(await passwords.verify('a', bytes('right'))).toBe(true)
    expect(lines.join('')).toContain('mqtt.passwords-unreadable')
  })
})

describe('authentication', () => {
  const credentials = (username?: string, password?: string) => ({
    clientId: 'c',
    remoteAddress: '192.0.2.1',
    username,
    password: password === undefined ? undefined : bytes(password),
  })

  it.each([true, false])('admits anonymous clients if that is allowed: %s', async (allowsAnonymous) => {
    await addUser(file, 'a', 'right')
    const judge = createAuthentication(openPasswordFile(file, ports), { allowsAnonymous })
    expect(await judge(credentials())).toBe(allowsAnonymous)
    expect(await judge(credentials('a', 'right'))).toBe(true)
    expect(await judge(credentials('a', 'wrong'))).toBe(false)
    expect(await judge(credentials('a'))).toBe(false)
    expect(await createAuthentication(undefined, { allowsAnonymous })(credentials('a', 'x'))).toBe(
      allowsAnonymous,
    )
  })
})
