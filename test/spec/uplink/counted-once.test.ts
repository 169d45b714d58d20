/**
 * An observation is identified by entity, attribute, datasetId, time and value: also if the entity was
 * deleted and re-created in between, and if it reaches the centre in more than one way.
 */
import { afterEach, expect, it } from 'vitest'
import { restoreLimits } from '#test/kit/ceilings.ts'
import { heldOf, observedAt, property, uplinkedPair } from '#test/kit/uplinked-pair.ts'

const pair = uplinkedPair()
afterEach(restoreLimits)

const entities = '/ngsi-ld/v1/entities'
const id = 'urn:thing:1'
const create = (level: object) => pair.send('POST', entities, { id, type: 'T', level, name: property('a') })
const remove = () => pair.send('DELETE', `${entities}/${id}`)
const observe = (value: unknown, second: number) =>
  pair.send('PATCH', `${entities}/${id}/attrs`, { level: observedAt(value, second) })
const levels = async (): Promise<number> => {
  const { observed } = (await heldOf(pair.centre, id)) as { observed: { level: unknown[] } }
  return observed.level.length
}

it('counts an observation once where the entity had two lives, live and after an outage', async () => {
  await pair.connect()
  await create(observedAt(5, 5))
  await pair.isSame(id)
  await remove()
  await create(observedAt(5, 5))
  await observe(6, 6)
  await pair.isSame(id)
  expect(await levels()).toBe(2)
  await pair.duringCut(async () => {
    await remove()
    await create(observedAt(5, 5))
    for (let second = 6; second < 30; second++) await observe(second, second)
    await remove()
    await create(observedAt(29, 29))
    await observe(30, 30)
  })
  await pair.isSame(id)
  expect(await levels()).toBe(26)
})

it('counts a value once, observed or not, where a gateway sends a new life of an entity twice', async () => {
  const states = { 'selvedge-states': 'times,types', via: 'HTTP/1.1 selvedge-edge' }
  const name = property('a', { modifiedAt: '2026-01-02T00:00:00Z' })
  for (let times = 0; times < 2; times++) {
    await pair.centre.send('POST', '/ngsi-ld/v1/entityOperations/delete', [id])
    const body = [{ id, type: 'T', level: observedAt(5, 5), name }]
    const answer = await pair.centre.send(
      'POST',
      '/ngsi-ld/v1/entityOperations/upsert?options=update',
      body,
      states,
    )
    expect(answer.status).toBe(201)
  }
  expect(await heldOf(pair.centre, id)).toMatchObject({
    observed: { level: [['2026-01-01T00:00:05Z', undefined, 5]] },
    written: { name: [['2026-01-02T00:00:00Z', undefined, 'a']] },
  })
})

it('counts an observation once where the history created the entity at the centre', async () => {
  await create(observedAt(1, 1))
  for (let second = 2; second < 20; second++) await observe(second, second)
  await remove()
  await create(observedAt(19, 19))
  await pair.connect()
  await observe(20, 20)
  await pair.isSame(id)
  expect(await levels()).toBe(20)
})
