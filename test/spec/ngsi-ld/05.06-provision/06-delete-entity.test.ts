/** Delete Entity [NGSI-LD 5.6.6, 6.5.3.2]. */
import { expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'

it('a deleted entity shall be 404 in every request about it', async () => {
  const id = freshId()
  await gateway.send('POST', path, { id, type: 'Room', a: property(1) })
  expect((await gateway.ask('DELETE', `${path}/${id}/`)).status).toBe(204)
  expect((await gateway.get(`${path}/${id}`)).status).toBe(404)
  expect((await gateway.ask('DELETE', `${path}/${id}`)).status).toBe(404)
  expect((await gateway.send('PATCH', `${path}/${id}/attrs`, { a: 1 })).status).toBe(404)
})

it('its id shall be available for another entity', async () => {
  const id = freshId()
  await gateway.send('POST', path, { id, type: 'Room', a: property(1) })
  await gateway.ask('DELETE', `${path}/${id}`)
  expect((await gateway.send('POST', path, { id, type: 'Hall' })).status).toBe(201)
  expect((await gateway.get(`${path}/${id}`)).json()).toEqual({ id, type: 'Hall' })
})

it('an id that is not a URI shall be 400', async () => {
  expect((await gateway.ask('DELETE', `${path}/room`)).status).toBe(400)
})
