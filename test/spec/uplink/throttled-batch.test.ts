/**
 * A batch has one time, in however many commits it is written: throttled values of any of them are sent when
 * their period ends, also to a broker without histories, which gets them in no other way.
 */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLesserBroker, type LesserBroker } from '#test/kit/lesser-broker.ts'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { interval: 200 }
const count = 800

const pair = siteAndCentre()
let broker: LesserBroker
beforeEach(async () => {
  const unknown = { '/selvedge': 404, [`${v1}/info`]: 404, [`${v1}/temporal`]: 501 }
  broker = await createLesserBroker(pair.centre.httpPort!, unknown)
})
afterEach(() => broker.close())

const upsert = async (unitCode: string, second: number): Promise<void> => {
  const level = { type: 'Property', value: second, unitCode, observedAt: `2026-01-01T00:00:0${second}Z` }
  const entities = Array.from({ length: count }, (_, i) => ({ id: `urn:tank:${i}`, type: 'Tank', level }))
  const answer = await pair.site.send('POST', `${v1}/entityOperations/upsert?options=update`, entities)
  expect(answer.status).toBeLessThan(300)
}
/** The number of entities by unit at the centre. */
const unitsThere = async (): Promise<Readonly<Record<string, number>>> => {
  const all: readonly { level: { unitCode: string } }[] = (
    await pair.centre.get(`${v1}/entities?type=Tank&limit=1000`)
  ).json()
  const units = Map.groupBy(all, ({ level }) => level.unitCode)
  return Object.fromEntries([...units].map(([unit, some]) => [unit, some.length]))
}

it('sends the throttled values of a whole batch', async () => {
  const notifierInfo = [{ key: 'selvedge:mode', value: 'uplink' }]
  const answer = await pair.site.send('POST', `${v1}/subscriptions`, {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'Tank' }],
    throttling: 3,
    notification: { endpoint: { uri: `${broker.url}${v1}`, notifierInfo } },
  })
  expect(answer.status).toBe(201)
  for (const [second, unitCode] of ['MTR', 'CMT', 'FOT'].entries()) {
    await upsert(unitCode, second)
    await vi.waitFor(async () => expect(await unitsThere()).toEqual({ [unitCode]: count }), withinMs)
  }
})
