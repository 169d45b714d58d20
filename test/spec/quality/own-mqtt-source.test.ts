/**
 * Streams whose data is at the gateway's own MQTT broker, which listens only after the analyser has started, and
 * at a broker that is not there.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import { afterAll, expect, it } from 'vitest'
import { freePort } from '#test/kit/ports.ts'
import { patience, sourceSite, streamAt } from './source-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-own-mqtt-'))
const port = await freePort()
const absentPort = await freePort()
const site = sourceSite(folder, {}, port)
const address = `mqtt://127.0.0.1:${port}`
const absent = `mqtt://127.0.0.1:${absentPort}`
const warned = () =>
  site
    .gateway()
    .logLines()
    .filter(({ event }) => event === 'quality.source-unreachable')
    .map(({ source }) => source)

afterAll(async () => {
  await site.gateway().stop()
  rmSync(folder, { recursive: true, force: true })
})

it('warns of a source that stays unreachable once, and not of its own broker at the start', async () => {
  const topic = (name: string) => ({ 'urn:selvedge:ns:topic': name })
  await site.start()
  await site.create([...streamAt('here', address, topic('plant/here'))])
  await site.create([...streamAt('nowhere', absent, topic('plant/nowhere'))])
  await site.connected(address)
  await site.gateway().stop()
  await site.start()
  await site.connected(address)
  await expect.poll(warned, patience).toEqual([absent])
  const client = await connectAsync(address)
  await client.publishAsync('plant/here', '20', { qos: 1 })
  await client.endAsync()
  await expect.poll(() => site.count('here'), patience).toBe(1)
  // By now the absent broker was tried several times.
  await expect
    .poll(() => site.sources(), patience)
    .toContainEqual(expect.objectContaining({ source: absent, failures: expect.toSatisfy((n) => n > 2) }))
  expect(warned()).toEqual([absent])
})
