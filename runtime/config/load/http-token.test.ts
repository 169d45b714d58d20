/** The HTTP token in its file, and which listeners need it. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { GatewayError } from '#base/register/errors.ts'
import {
  isLoopbackListener,
  isThere,
  readAuthorities,
  readOrCreateToken,
  readSecretFile,
} from './http-token.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-access-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('isLoopbackListener', () => {
  it.each(['127.0.0.1', '127.1.2.3', 'localhost', '::1', '[::1]'])('%s needs no token', (host) => {
    expect(isLoopbackListener(host)).toBe(true)
  })

  it.each(['0.0.0.0', '0.0.0.1', '::', '10.0.0.1', 'fe80::1', 'gateway.local', '128.0.0.1'])(
    '%s needs one',
    (host) => {
      expect(isLoopbackListener(host)).toBe(false)
    },
  )
})

describe('readOrCreateToken', () => {
  it('makes one token, for the owner only, and says so once', () => {
    const file = join(folder, 'new/data/http-token')
    const first = readOrCreateToken(file)
    expect(first.created).toBe(true)
    expect(first.token).toMatch(/^[A-Za-z0-9_-]{32}$/)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toBe(`${first.token}\n`)
    expect(readOrCreateToken(file)).toEqual({ token: first.token, created: false })
    expect(readOrCreateToken(join(folder, 'other')).token).not.toBe(first.token)
  })

  it('takes a token somebody wrote', () => {
    const file = join(folder, 'own')
    writeFileSync(file, ' my-token \r\nsecond line\n', { mode: 0o600 })
    expect(readOrCreateToken(file)).toEqual({ token: 'my-token', created: false })
  })

  it.each([0o644, 0o640, 0o660, 0o602, 0o601])('refuses mode %o', (mode) => {
    const file = join(folder, 'open')
    writeFileSync(file, 'x\n')
    chmodSync(file, mode)
    expect(() => readSecretFile(file)).toThrow(
      expect.objectContaining({
        code: 'config.invalid',
        message: expect.stringContaining('it must be 0600') as string,
      }),
    )
  })

  it('refuses an empty file and a folder, and names them', () => {
    writeFileSync(join(folder, 'empty'), '\n', { mode: 0o600 })
    mkdirSync(join(folder, 'folder'))
    for (const name of ['empty', 'folder']) {
      expect(() => readSecretFile(join(folder, name))).toThrow(join(folder, name))
    }
    expect(readSecretFile(join(folder, 'none'))).toBeUndefined()
  })

  it('says why a token cannot be made', () => {
    const file = join(folder, 'folder/../empty/token')
    expect(() => readOrCreateToken(file)).toThrow(expect.objectContaining({ code: 'config.invalid' }))
  })
})

it('a file that this user may not read is told as such, and not as a mistake in the settings', () => {
  const closed = join(folder, 'closed')
  mkdirSync(closed)
  const file = join(closed, 'secret')
  writeFileSync(file, 'x\n', { mode: 0o000 })
  // Root may read everything.
  const isRoot = process.geteuid!() === 0
  if (isRoot) process.seteuid!(65_534)
  const told = [isThere, readSecretFile, readAuthorities].map((read) => {
    try {
      return String(read(file))
    } catch (error) {
      const { code, message, entry } = error as GatewayError
      return `${code}: ${message} (${entry.hint})`
    }
  })
  if (isRoot) process.seteuid!(0)
  const words = `config.no-permission: ${file} cannot be read by this user (Run the command as the user of the gateway, or with sudo.)`
  // The folder of root is closed to others; that of another user is his own.
  expect(told).toEqual([isRoot ? words : 'true', words, words])
})
