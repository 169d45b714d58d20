/**
 * Admission of devices: mode auto admits all; modes quarantine and allow-list admit listed, declared and
 * already provisioned devices. The answer to an HTTP client states the readings that were held back; nothing
 * is acknowledged as accepted that was not.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import type { Reply } from '#test/kit/http-gateway.ts'

const lists = {
  SELVEDGE_PROVISIONING_ALLOW: 'listed',
  SELVEDGE_PROVISIONING_IGNORE: 'ignored',
  SELVEDGE_PROVISIONING_DEVICES: '{"declared":{"name":"Declared"}}',
}
const devices = ['listed', 'declared', 'ignored', 'unknown'] as const

let folder: string
let gateway: GatewayInside

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-test-'))
})
afterEach(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

async function start(mode: string, env: Readonly<Record<string, string>> = lists): Promise<void> {
  gateway = await startGatewayInside(folder, { SELVEDGE_PROVISIONING_MODE: mode, ...env })
}

const push = (...names: readonly string[]): Promise<Reply> =>
  gateway.ask('POST', '/senml', {
    body: names.map((n) => ({ n, v: 1 })),
    headers: { 'Content-Type': 'application/senml+json' },
  })

/** Devices that became a Platform. */
async function taken(): Promise<string[]> {
  const type = encodeURIComponent('http://www.w3.org/ns/sosa/Platform')
  const platforms = (await gateway.get(`/ngsi-ld/v1/entities?type=${type}`)).json() as { id: string }[]
  return platforms.map(({ id }) => id.split(':').at(-1)!)
}

async function counted(metric: string): Promise<number> {
  const { text } = await gateway.get('/metrics')
  return Number(new RegExp(`^${metric} (\\d+)$`, 'm').exec(text)?.[1])
}

describe.each([
  ['auto', ['listed', 'declared', 'unknown'], 0],
  ['quarantine', ['listed', 'declared'], 1],
  ['allow-list', ['listed', 'declared'], 0],
])('mode %s', (mode, admitted, quarantined) => {
  it(`takes ${admitted.join(', ')}`, async () => {
    await start(mode)
    for (const device of devices) await push(`${device}:t`)
    expect(await taken()).toEqual(admitted)
    expect(await counted('selvedge_frames_quarantined_total')).toBe(quarantined)
    expect(await counted('selvedge_readings_rejected_total')).toBe(
      devices.length - admitted.length - quarantined,
    )
  })
})

describe.each(['quarantine', 'allow-list'])('mode %s', (mode) => {
  it('keeps accepting a device that was accepted once', async () => {
    await start('auto', {})
    await push('unknown:t')
    await gateway.close()
    await start(mode)
    expect((await push('unknown:t', 'unknown:u')).status).toBe(204)
  })
})

it('reports the readings that were held back, with the reason', async () => {
  await start('quarantine')
  expect((await push('listed:t')).status).toBe(204)
  const waiting = await push('unknown:t', 'unknown:u')
  expect([waiting.status, waiting.json()]).toEqual([
    200,
    {
      accepted: 0,
      rejected: 2,
      problems: [
        { field: 't', reason: 'the device unknown is not accepted yet; the frame waits in quarantine' },
        { field: 'u', reason: 'the device unknown is not accepted yet; the frame waits in quarantine' },
      ],
    },
  ])
  const mixed = await push('listed:t', 'ignored:t')
  expect([mixed.status, mixed.json()]).toEqual([
    200,
    {
      accepted: 1,
      rejected: 1,
      problems: [{ field: 't', reason: 'readings of the device ignored are ignored' }],
    },
  ])
})

it('releases frames from quarantine when their device is accepted, each once and with its time', async () => {
  await start('quarantine')
  const waits = (value: number): Promise<Reply> =>
    gateway.ask('POST', '/senml', {
      body: [{ n: 'unknown:t', v: value }],
      headers: { 'Content-Type': 'application/senml+json' },
    })
  for (const value of [1, 2, 2]) await waits(value)
  await push('stranger:t')
  const before = Date.now()
  await gateway.close()
  for (let starts = 0; starts < 2; starts++) {
    await start('quarantine', { ...lists, SELVEDGE_PROVISIONING_ALLOW: 'listed,unknown' })
    expect(await taken()).toEqual(['unknown'])
    const id = 'urn:ngsi-ld:StreamObservation:unknown:t'
    const path = `/ngsi-ld/v1/temporal/entities/${id}?options=temporalValues`
    const history = (await gateway.get(path)).json() as Record<string, { values: [number, string][] }>
    const values = Object.entries(history).find(([name]) => name.endsWith('hasSimpleResult'))![1].values
    expect(values.map(([value]) => value)).toEqual([1, 2, 2])
    expect(values.every(([, time]) => Date.parse(time) <= before)).toBe(true)
    if (starts === 0) await gateway.close()
  }
})
