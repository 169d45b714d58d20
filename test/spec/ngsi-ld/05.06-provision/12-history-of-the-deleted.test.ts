/** The history is deleted with the entity if history.afterDeletion is remove [NGSI-LD 5.6.6]. */
import { expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile({ history: { afterDeletion: 'remove' } })

it('shall delete the whole history with the entity; a new entity with the same id has a new history', async () => {
  const id = freshId('Vehicle')
  const path = `/ngsi-ld/v1/entities/${id}`
  const at = (second: number): object => ({ observedAt: `2025-01-01T00:00:0${second}Z` })
  const create = (second: number) =>
    gateway.send('POST', '/ngsi-ld/v1/entities', { id, type: 'Vehicle', speed: property(second, at(second)) })
  await create(0)
  for (const second of [1, 2]) {
    await gateway.send('PATCH', `${path}/attrs`, { speed: property(second, at(second)) })
  }
  const temporal = `/ngsi-ld/v1/temporal/entities/${id}`
  expect((await gateway.get(temporal)).status).toBe(200)
  expect((await gateway.ask('DELETE', path)).status).toBe(204)
  expect((await gateway.get(temporal)).status).toBe(404)
  await create(5)
  const { speed } = (await gateway.get(temporal)).json() as { speed: { value: number }[] }
  expect(speed.map(({ value }) => value)).toEqual([5])
})
