/**
 * check and users report unreadable files with the right exit code; status queries a gateway by its address.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-unreadable-'))
const at = (name: string): string => join(folder, name)
const latin1 = Buffer.from([0x61, 0x3a, 0xfc, 0x0a])

afterAll(() => rmSync(folder, { recursive: true }))

// Root can read every file, so a loop of links and a file in place of a folder stand for inaccessible files.
writeFileSync(at('file'), '')
mkdirSync(at('folder'), { mode: 0o700 })
symlinkSync(at('loop'), at('loop'))
writeFileSync(at('latin1.yaml'), latin1)
writeFileSync(at('latin1'), latin1, { mode: 0o600 })
writeFileSync(at('broken.yaml'), 'http: [\n')

const selvedge = (...args: string[]) =>
  runSelvedge([...args, '--http-port', '0', '--mqtt-port', '0'], {
    cwd: folder,
    env: {
      SELVEDGE_DATA: at('data'),
      SELVEDGE_RANKING_PORT: 'off',
      SELVEDGE_SEARCH_PORT: 'off',
      SELVEDGE_ORCHESTRATOR_PORT: 'off',
    },
  })

describe.each(['check', 'users'])('selvedge %s', (command) => {
  it.each([
    ['absent.yaml', 'a settings file that exists'],
    ['folder', 'a file, not a folder'],
    ['latin1.yaml', 'text in UTF-8'],
    ['broken.yaml', 'YAML ('],
    ['loop', 'a readable file (ELOOP)'],
  ])('rejects %s as settings', async (name, words) => {
    const { code, stdout, stderr } = await selvedge(command, '--config', at(name))
    expect([code, stdout]).toEqual([78, ''])
    expect(stderr).toContain(words)
    expect(stderr).toContain(at(name))
  })

  it.each([
    ['folder', 'must be a file'],
    ['latin1', 'must be text in UTF-8'],
    ['loop', 'cannot be read: ELOOP'],
    ['file/passwords', 'cannot be read: ENOTDIR'],
  ])('rejects %s as password file', async (name, words) => {
    const { code, stdout, stderr } = await selvedge(command, '--set', `mqtt.passwordFile=${at(name)}`)
    expect(code).toBe(command === 'check' ? 1 : 78)
    expect(stdout + stderr).toContain(`${at(name)} ${words}`)
  })
})

it('selvedge users reports a missing password file', async () => {
  const { code, stdout, stderr } = await selvedge('users')
  expect([code, stdout, stderr]).toEqual([
    0,
    '',
    `${at('data/mqtt-passwords')} does not exist yet; --add creates it\n`,
  ])
})

it('selvedge run does not start without authentication if the password file is inaccessible', async () => {
  const { code, stdout, stderr } = await selvedge('run', '--set', `mqtt.passwordFile=${at('loop')}`)
  expect(code).not.toBe(0)
  expect(stdout + stderr).toContain('cannot be read: ELOOP')
})

it('selvedge status queries the gateway of --url with the token of --token-file', async () => {
  const gateway = await startGatewayProcess({ env: { SELVEDGE_HOST: '0.0.0.0' } })
  const file = join(gateway.dataFolder, 'http-token')
  const accepted = await selvedge('status', '--url', `${gateway.httpUrl}/`, '--token-file', file)
  expect([accepted.code, accepted.stdout]).toEqual([
    0,
    expect.stringContaining(`at ${gateway.httpUrl}: ready`),
  ])
  const refused = await selvedge('status', '--url', gateway.httpUrl)
  expect([refused.code, refused.stdout]).toEqual([1, ''])
  expect(refused.stderr).toContain('requires a token')
  await gateway.stop()
  const gone = await selvedge('status', '--url', gateway.httpUrl)
  expect([gone.code, gone.stdout, gone.stderr]).toEqual([1, '', expect.stringContaining('no answer from')])
  expect(await selvedge('status', '--url', 'mqtt://x')).toMatchObject({ code: 64, stdout: '' })
})
