/**
 * A batch bears one time in however many commits it is written: what an uplink held back of any of them is told when its time has
 * come, also to a broker that keeps no histories and so hears of it by nothing else.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { createLesserBroker, type LesserBroker } from '#test/kit/lesser-broker.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { timeout: 20_000, interval: 200 }
const count = 800

let folder: string
let site: GatewayInside
let centre: GatewayInside
let broker: LesserBroker
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-throttled-'))
  ;[site, centre] = (await Promise.all(
    ['site', 'centre'].map((name) => startGatewayInside(join(folder, name))),
  )) as [GatewayInside, GatewayInside]
  const unknown = { '/selvedge': 404, [`${v1}/info`]: 404, [`${v1}/temporal`]: 501 }
  broker = await createLesserBroker(centre.httpPort!, unknown)
})
afterEach(async () => {
  await Promise.all([site.close(), centre.close()])
  await broker.close()
  rmSync(folder, { recursive: true })
})

const upsert = async (unitCode: string, second: number): Promise<void> => {
  const level = { type: 'Property', value: second, unitCode, observedAt: `2026-01-01T00:00:0${second}Z` }
  const entities = Array.from({ length: count }, (_, i) => ({ id: `urn:tank:${i}`, type: 'Tank', level }))
  const answer = await site.send('POST', `${v1}/entityOperations/upsert?options=update`, entities)
  expect(answer.status).toBeLessThan(300)
}
/** How many have which unit over there. */
const unitsThere = async (): Promise<Readonly<Record<string, number>>> => {
  const all: readonly { level: { unitCode: string } }[] = (
    await centre.get(`${v1}/entities?type=Tank&limit=1000`)
  ).json()
  const units = Map.groupBy(all, ({ level }) => level.unitCode)
  return Object.fromEntries([...units].map(([unit, some]) => [unit, some.length]))
}

it('tells what it held back of all of a batch', async () => {
  const notifierInfo = [{ key: 'selvedge:mode', value: 'uplink' }]
  const answer = await site.send('POST', `${v1}/subscriptions`, {
    ...{ id: 'urn:up', type: 'Subscription', entities: [{ type: 'Tank' }], throttling: 3 },
    notification: { endpoint: { uri: `${broker.url}${v1}`, notifierInfo } },
  })
  expect(answer.status).toBe(201)
  for (const [second, unitCode] of ['MTR', 'CMT', 'FOT'].entries()) {
    await upsert(unitCode, second)
    await vi.waitFor(async () => expect(await unitsThere()).toEqual({ [unitCode]: count }), withinMs)
  }
}, 90_000)
