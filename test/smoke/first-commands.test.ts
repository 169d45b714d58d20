/**
 * What a newcomer types first, as processes: commands without an action, without a gateway, with the address of something
 * else, with the token of a gateway elsewhere, and the first query of the guide on discovering.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type GatewayProcess, runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-first-'))
let gateway: GatewayProcess

/** On another machine as far as files go: neither the data folder nor the settings of the gateway. */
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
  ['queue', 'Nothing was given up.\n'],
  ['devices', 'Nothing waits, and every published topic is read.\n'],
])('selvedge %s without an action lists', async (command, words) => {
  expect(await selvedge(command, '--url', gateway.httpUrl)).toMatchObject({ code: 0, stdout: words })
  expect(await selvedge(command, 'ls', '--url', gateway.httpUrl)).toMatchObject({ code: 0, stdout: words })
})

it('selvedge tunnels without an action lists', async () => {
  expect(await selvedge('tunnels', '--json')).toMatchObject({ code: 0, stdout: '[]\n' })
})

it('the first query of the guide on discovering finds the first value of the README', async () => {
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
