/**
 * First commands of a new user, as processes: commands without an action, without a gateway, with the address
 * of another server, with the token of a remote gateway, and the first query of the discovery guide.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type GatewayProcess, runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-first-'))
let gateway: GatewayProcess

/**
 * Runs a command without access to the data folder and the settings of the gateway, as on another machine.
 */
const selvedge = (...args: string[]): ReturnType<typeof runSelvedge> =>
  runSelvedge(args, { env: { SELVEDGE_DATA: join(folder, 'none') }, cwd: folder })

beforeAll(async () => {
  gateway = await startGatewayProcess()
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

it.each([
  ['queue', 'The queue is empty.\n'],
  ['devices', 'No device waits, and a bridge reads every published topic.\n'],
])('selvedge %s without an action lists entries', async (command, words) => {
  expect(await selvedge(command, '--url', gateway.httpUrl)).toMatchObject({ code: 0, stdout: words })
  expect(await selvedge(command, 'ls', '--url', gateway.httpUrl)).toMatchObject({ code: 0, stdout: words })
})

it('selvedge tunnels without an action lists entries', async () => {
  expect(await selvedge('tunnels', '--json')).toMatchObject({ code: 0, stdout: '[]\n' })
})

it('the first query of the discovery guide finds the first value of the README', async () => {
  const sent = await fetch(`${gateway.httpUrl}/senml`, {
    method: 'POST',
    headers: { 'content-type': 'application/senml+json' },
    body: '[{"bn":"urn:dev:mac:0024befffe804ff1","n":"temperature","u":"Cel","v":21.5}]',
  })
  expect(sent.ok).toBe(true)
  const query = new URLSearchParams({
    type: 'IotStream',
    options: 'keyValues',
    q: 'iot-stream:generatedBy.sosa:observes.label=="temperature"',
  })
  const answer = await fetch(`${gateway.httpUrl}/indexing/ngsi-ld/v1/entities?${query}`, {
    headers: { 'selvedge-index-position': 'latest' },
  })
  expect(await answer.json()).toMatchObject([{ id: expect.stringContaining('0024befffe804ff1') as string }])
})

/** Commands that only read from a running gateway. */
const readCommands = ['devices', 'queue', 'export', 'status']

it('commands accept the address of a gateway with the path of its broker', async () => {
  for (const command of readCommands) {
    const { code, stderr } = await selvedge(command, '--url', `${gateway.httpUrl}/ngsi-ld/v1/`)
    expect([command, code, stderr]).toEqual([command, 0, expect.not.stringContaining('selvedge ')])
  }
})

it('commands report that the server is not a gateway', async () => {
  const other = createServer((request, response) => {
    if (request.url!.startsWith('/json')) response.end('{"status":"UP"}')
    else response.writeHead(404).end('<html>')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => other.once('listening', resolve))
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  for (const command of readCommands) {
    const { code, stdout, stderr } = await selvedge(command, '--url', `${url}/ngsi-ld/v1`)
    expect([command, code, stdout]).toEqual([command, 1, ''])
    expect(stderr).toContain(`${url} is not the address of a gateway`)
  }
  expect(await selvedge('status', '--url', `${url}/json`)).toMatchObject({ code: 1, stdout: '' })
  const ofSettings = await selvedge('status', '--http-port', new URL(url).port)
  expect(ofSettings).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('is not the address of a gateway') as string,
  })
  other.close()
})

it('commands suggest checking that the gateway is running if there is no response', async () => {
  for (const command of readCommands) {
    const { code, stdout, stderr } = await selvedge(command, '--url', 'http://127.0.0.1:1')
    expect([command, code, stdout]).toEqual([command, 1, ''])
    expect(stderr).toMatch(/no answer from .*\n {2}Check that the gateway is running/)
  }
})

it('commands read the token of a remote gateway from --token-file, and name a wrong file', async () => {
  const guarded = await startGatewayProcess({ env: { SELVEDGE_HOST: '0.0.0.0' } })
  const wrong = join(folder, 'wrong-token')
  writeFileSync(wrong, 'wrong\n', { mode: 0o600 })
  for (const command of readCommands) {
    const at = [command, '--url', guarded.httpUrl]
    const right = await selvedge(...at, '--token-file', join(guarded.dataFolder, 'http-token'))
    expect([command, right.code]).toEqual([command, 0])
  }
  for (const command of ['queue', 'status']) {
    const rejected = await selvedge(command, '--url', guarded.httpUrl, '--token-file', wrong)
    expect([command, rejected.code]).toEqual([command, 1])
    expect(rejected.stderr).toMatch(/rejected the token in .*wrong-token\n {2}Name the file .*--token-file/)
    const none = await selvedge(command, '--url', guarded.httpUrl)
    expect([command, none.code]).toEqual([command, 1])
    expect(none.stderr).toContain(`${join(folder, 'none', 'http-token')} does not exist`)
  }
  await guarded.stop()
})

it('an export without results creates no file', async () => {
  for (const file of ['none.jsonld', 'none.csv']) {
    const out = join(folder, file)
    const exported = await selvedge('export', '--url', gateway.httpUrl, '--type', 'Unheard', '--out', out)
    expect([exported.code, exported.stdout]).toEqual([0, expect.stringContaining('0 entities exported: ')])
    expect([file, existsSync(out)]).toEqual([file, false])
  }
  const refused = join(folder, 'refused.jsonld')
  const exported = await selvedge('export', '--url', gateway.httpUrl, '--q', '((', '--out', refused)
  expect([exported.code, existsSync(refused)]).toEqual([1, false])
})

it('status of a data folder never reports the gateway of another folder', async () => {
  const port = new URL(gateway.httpUrl).port
  const data = join(folder, 'nonexistent')
  expect(await selvedge('status', '--data', data, '--http-port', port)).toMatchObject({
    code: 1,
    stdout: `Selvedge is not running, and ${data} does not exist yet.\n`,
  })
  const own = await selvedge('status', '--data', gateway.dataFolder, '--http-port', port)
  expect([own.code, own.stdout]).toEqual([0, expect.stringContaining(`at ${gateway.httpUrl}: ready`)])
})

it('status reports a folder without gateway data', async () => {
  const data = join(folder, 'other')
  mkdirSync(data, { mode: 0o700 })
  writeFileSync(join(data, 'note'), 'nothing')
  expect(await selvedge('status', '--data', data, '--http-port', '1')).toMatchObject({
    code: 1,
    stdout: `Selvedge is not running, and ${data} contains no gateway data.\n`,
  })
})
