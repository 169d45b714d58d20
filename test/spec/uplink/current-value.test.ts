/**
 * The gateway decides which value of an attribute is current, even if it was observed before another one: the
 * centre holds the same current value and the same history.
 */
import { afterEach, expect, it, vi } from 'vitest'
import { restoreLimits } from '#test/kit/ceilings.ts'
import { observedAt, property, uplinkedPair } from '#test/kit/uplinked-pair.ts'

const pair = uplinkedPair()
afterEach(restoreLimits)

const entities = '/ngsi-ld/v1/entities'
const id = 'urn:thing:1'
const create = (level: object) =>
  pair.send('POST', entities, { id, type: 'T', level, name: property('a'), mode: property('m') })
const observe = (value: unknown, second: number) =>
  pair.send('PATCH', `${entities}/${id}/attrs`, { level: observedAt(value, second) })

it('makes a value current that was observed before the last one, live and after an outage', async () => {
  await pair.connect()
  await create(observedAt(1, 1))
  await pair.isSame(id)
  await observe(5, 5)
  await observe(4, 4)
  await pair.isSame(id)
  await pair.duringCut(async () => {
    await observe(30, 30)
    await observe(20, 20)
  })
  await pair.isSame(id)
})

it('reconciles them so, and keeps values that are newer there and unknown here', async () => {
  await pair.connect()
  await create(observedAt(1, 1))
  await pair.isSame(id)
  await observe(3, 3)
  await observe(2, 2)
  await pair.isSame(id)
  const identity = (await pair.site.get('/ngsi-ld/v1/info/sourceIdentity')).json() as {
    contextSourceAlias: string
  }
  const asFromHere = { via: `HTTP/1.1 ${identity.contextSourceAlias}` }
  const there = (level: object) => pair.centre.send('PATCH', `${entities}/${id}/attrs`, { level }, asFromHere)
  const reconcile = async (newer: number, different: number) => {
    await pair.send('POST', '/selvedge/v1/uplinks/urn:up/reconcile')
    await vi.waitFor(async () =>
      expect((await pair.site.get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({
        reconcile: { phase: 'done', newer, different },
      }),
    )
  }
  await there(observedAt(3, 3))
  await reconcile(0, 1)
  await pair.isSame(id)
  await there(observedAt(9, 9))
  await reconcile(1, 0)
  expect((await pair.centre.get(`${entities}/${id}?options=keyValues`)).json()).toMatchObject({ level: 9 })
})

it('adds no instance of unobserved values when an entity is sent in full again', async () => {
  await pair.connect()
  await pair.duringCut(async () => {
    await create(property(1))
    await pair.send('PATCH', `${entities}/${id}/attrs`, { name: property('b') })
  })
  await pair.isSame(id)
  await pair.duringCut(() => pair.send('PATCH', `${entities}/${id}/attrs`, { name: property('c') }))
  await pair.isSame(id)
  // Everything selected is sent again.
  await pair.send('PATCH', '/ngsi-ld/v1/subscriptions/urn:up', { entities: [{ type: 'T,U' }] })
  await pair.send('PATCH', `${entities}/${id}/attrs`, { mode: property('n') })
  await pair.isSame(id)
})

it('sends the deletion of an attribute history, live and after an outage', async () => {
  const history = `/ngsi-ld/v1/temporal/entities/${id}/attrs`
  await pair.connect()
  await create(observedAt(1, 1))
  await observe(2, 2)
  await pair.isSame(id)
  await pair.send('DELETE', `${history}/level`)
  await observe(3, 3)
  await pair.isSame(id)
  await pair.duringCut(async () => {
    await observe(4, 4)
    await pair.send('DELETE', `${history}/level`)
    await pair.send('DELETE', `${history}/name`)
    await observe(5, 5)
    await observe(6, 6)
  })
  await pair.isSame(id)
})
