/**
 * Streams whose data is at another NGSI-LD broker, here a second gateway: each observation is counted once, also
 * after a kill.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { patience, sourceSite, streamAt } from './source-site.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-ngsi-ld-'))
const site = sourceSite(join(folder, 'data'))
const other = sourceSite(join(folder, 'other'))
const begin = Date.now() - 3_600_000
const id = 'urn:ngsi-ld:StreamObservation:far'

const observation = (i: number) => ({
  [`${sosa}hasSimpleResult`]: {
    type: 'Property',
    value: 20 + i,
    observedAt: new Date(begin + i * 60_000).toISOString(),
  },
})
const observe = async (i: number): Promise<void> => {
  expect(await other.send('POST', `/ngsi-ld/v1/entities/${id}/attrs`, observation(i))).toBe(204)
}
const counted = (count: number) => expect.poll(() => site.count('far'), patience).toBe(count)

beforeAll(async () => {
  await Promise.all([site.start(), other.start()])
})
afterAll(async () => {
  await Promise.all([site.gateway().stop(), other.gateway().stop()])
  rmSync(folder, { recursive: true, force: true })
})

it('counts each observation of a stream at an NGSI-LD broker once', async () => {
  const type = 'http://purl.org/iot/ontology/iot-stream#StreamObservation'
  await other.create([{ id, type, ...observation(0) }])
  for (const i of [1, 2]) await observe(i)
  const address = other.gateway().httpUrl
  await site.create(streamAt('far', `${address}/ngsi-ld/v1`, {}))
  await counted(3)
  await site.connected(address)
  await site.gateway().kill()
  for (const i of [3, 4]) await observe(i)
  await site.start()
  await counted(5)
  const [source] = await site.sources()
  expect(source).toMatchObject({ source: address, state: 'connected', streams: 1, failures: 0 })
})
