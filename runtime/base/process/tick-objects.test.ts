/** Node must still hand out the object of a tick: otherwise nothing keeps its hidden class. */
import { expect, it } from 'vitest'
import { keepTicksFast } from './tick-objects.ts'

it('keeps the object that Node creates for a tick, the same one for the life of the process', async () => {
  const kept = await keepTicksFast()
  expect(Object.keys(kept)).toEqual(['callback', 'args'])
  expect(await keepTicksFast()).toBe(kept)
})
