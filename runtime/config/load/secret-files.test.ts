/** Secret files: the HTTP token, required secrets and CA bundles. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { GatewayError } from '#base/register/errors.ts'
import { isThere, readAuthorities, readOrCreateToken, readSecretFile } from './secret-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-access-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('readOrCreateToken', () => {
  it('creates one token, readable by the owner only, and reports the creation once', () => {
    const file = join(folder, 'new/data/http-token')
    const first = readOrCreateToken(file)
    expect(first.created).toBe(true)
    expect(first.token).toMatch(/^[A-Za-z0-9_-]{32}$/)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toBe(`${first.token}\n`)
    expect(readOrCreateToken(file)).toEqual({ token: first.token, created: false })
    expect(readOrCreateToken(join(folder, 'other')).token).not.toBe(first.token)
  })

  it('uses an existing token', () => {
    const file = join(folder, 'own')
    writeFileSync(file, ' my-token \r\nsecond line\n', { mode: 0o600 })
    expect(readOrCreateToken(file)).toEqual({ token: 'my-token', created: false })
  })

  it.each([0o644, 0o640, 0o660, 0o602, 0o601])('rejects mode %o', (mode) => {
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

  it('rejects an empty file and a folder, and names them', () => {
    writeFileSync(join(folder, 'empty'), '\n', { mode: 0o600 })
    mkdirSync(join(folder, 'folder'))
    for (const name of ['empty', 'folder']) {
      expect(() => readSecretFile(join(folder, name))).toThrow(join(folder, name))
    }
    expect(readSecretFile(join(folder, 'none'))).toBeUndefined()
  })

  it('reports why a token cannot be created', () => {
    const file = join(folder, 'folder/../empty/token')
    expect(() => readOrCreateToken(file)).toThrow(expect.objectContaining({ code: 'config.invalid' }))
  })
})

it('reports a file without read permission as such, and not as a mistake in the settings', () => {
  const closed = join(folder, 'closed')
  mkdirSync(closed)
  const file = join(closed, 'secret')
  writeFileSync(file, 'x\n', { mode: 0o000 })
  // Root may read everything.
  const isRoot = process.geteuid!() === 0
  if (isRoot) process.seteuid!(65_534)
  const reports = [isThere, readSecretFile, readAuthorities].map((read) => {
    try {
      return String(read(file))
    } catch (error) {
      const { code, message, entry } = error as GatewayError
      return `${code}: ${message} (${entry.hint})`
    }
  })
  if (isRoot) process.seteuid!(0)
  const words = `config.no-permission: ${file} cannot be read by this user (Run the command as the user of the gateway, or with sudo.)`
  // As root the test drops its rights, so that the folder is inaccessible; otherwise the user owns the
  // folder.
  expect(reports).toEqual([isRoot ? words : 'true', words, words])
})
