/**
 * Basic authentication with a real process: a listener that is not loopback requires the token or a password.
 * Both are created at the first start, shown once, and readable only by their owner.
 */
import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { describePeer } from '#test/kit/peers.ts'
import { runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

const run = promisify(execFile)
const open = { SELVEDGE_HOST: '0.0.0.0' }

test('an open HTTP listener requires the token, which the first start creates and shows once', async () => {
  const gateway = await startGatewayProcess({ env: open })
  const shown = /HTTP token[^\n]*:\n(\S+)\n/.exec(gateway.output())?.[1]
  expect(shown).toMatch(/^[\w-]{32}$/)
  const at = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${gateway.httpUrl}${path}`, { headers })
  const entities = '/ngsi-ld/v1/entities?type=Room'
  expect((await at(entities)).status).toBe(401)
  expect((await at('/health/ready')).status).toBe(401)
  expect((await at('/health/live')).status).toBe(200)
  expect((await at(entities, { authorization: 'Bearer wrong' })).status).toBe(401)
  expect((await at(entities, { authorization: `Bearer ${shown}` })).status).toBe(200)
  expect((await at(entities, { 'x-auth-token': shown! })).status).toBe(200)
  for (const file of ['http-token', 'mqtt-passwords']) {
    expect(statSync(join(gateway.dataFolder, file)).mode & 0o777).toBe(0o600)
  }
  expect(
    gateway
      .logLines()
      .map((line) => JSON.stringify(line))
      .join(),
  ).not.toContain(shown)
  await gateway.stop()
})

test('status reads the token, and reports a missing or rejected one', async () => {
  const gateway = await startGatewayProcess({ env: open })
  const args = ['status', '--http-port', new URL(gateway.httpUrl).port]
  expect(await runSelvedge([...args, '--data', gateway.dataFolder])).toMatchObject({ code: 0 })
  const nowhere = join(tmpdir(), 'selvedge-nowhere')
  const other = await runSelvedge(['status', '--url', gateway.httpUrl, '--token-file', nowhere])
  expect(other).toMatchObject({ code: 1, stdout: '' })
  expect(other.stderr).toMatch(/requires a token|does not exist/)
  await gateway.stop()
})

test('a later start shows neither token nor password again', async () => {
  const first = await startGatewayProcess({ env: open })
  await first.kill('SIGTERM')
  const second = await startGatewayProcess({ env: open, dataFolder: first.dataFolder })
  expect(second.output()).not.toContain('shown only once')
  await second.stop()
  await first.stop()
})

test('users are listed, added with a given or a generated password, and removed', async () => {
  const gateway = await startGatewayProcess()
  const env = { SELVEDGE_DATA: gateway.dataFolder }
  expect(await runSelvedge(['users', '--json'], { env })).toMatchObject({ code: 0, stdout: '[]\n' })
  expect((await runSelvedge(['users', '--add', 'anna'], { env })).stdout).toMatch(/^[\w-]{24}\n$/)
  await runSelvedge(['users', '--add', 'ben', '--password-stdin'], { env, input: 'secret\n' })
  expect((await runSelvedge(['users'], { env })).stdout).toBe('anna\nben\n')
  expect(await runSelvedge(['users', '--remove', 'anna'], { env })).toMatchObject({ code: 0 })
  expect(await runSelvedge(['users', '--remove', 'anna'], { env })).toMatchObject({ code: 1 })
  expect((await runSelvedge(['users'], { env })).stdout).toBe('ben\n')
  await gateway.stop()
})

test.each([
  [['--add', 'a:b'], 'a user name must have'],
  [['--add', 'c', '--password-stdin'], 'a password must have at least'],
  [['--add', 'a', '--remove', 'b'], 'exclude each other'],
])('users %j is wrong usage', async (flags, words) => {
  const env = { SELVEDGE_DATA: join(tmpdir(), 'selvedge-none') }
  const { code, stderr } = await runSelvedge(['users', ...flags], { env, input: '\n' })
  expect([code, stderr]).toEqual([64, expect.stringContaining(words)])
})

describePeer('mosquitto_pub', 'an open MQTT listener', (publisher) => {
  test('rejects clients without a password and accepts the password that was shown', async () => {
    const gateway = await startGatewayProcess({ env: open })
    const [, user, password] = /MQTT user (\S+), password[^\n]*:\n(\S+)\n/.exec(gateway.output())!
    const message = [
      '-t',
      'senml/x',
      '-m',
      '[{"bn":"d:","n":"t","v":1}]',
      '-q',
      '1',
      '-p',
      String(gateway.mqttPort),
    ]
    await expect(run(publisher, message)).rejects.toThrow(/refused/)
    await expect(run(publisher, [...message, '-u', user!, '-P', 'wrong'])).rejects.toThrow(/refused/)
    await run(publisher, [...message, '-u', user!, '-P', password!])
    await gateway.stop()
  })
})
