/**
 * An observation is one, by entity, attribute, datasetId, time and value: also where an entity was deleted and created again in
 * between, and where it reaches the centre by more than one way.
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

it('is counted once where the entity had two lives, live and after a cut', async () => {
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

it('is counted once where the entity came into being at the centre by its history', async () => {
  await create(observedAt(1, 1))
  for (let second = 2; second < 20; second++) await observe(second, second)
  await remove()
  await create(observedAt(19, 19))
  await pair.connect()
  await observe(20, 20)
  await pair.isSame(id)
  expect(await levels()).toBe(20)
})
