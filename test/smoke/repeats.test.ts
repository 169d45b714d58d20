/** A repeated notification has the same id, so that the receiver can recognize it. */
import { expect, test } from 'vitest'
import { startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver } from '#test/kit/receiver.ts'

test('a notification that is sent again keeps its unique id, also after a kill', async () => {
  const receiver = await createReceiver()
  const first = await startGatewayProcess()
  const { dataFolder } = first
  const post = async (url: string, body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json' }
    expect((await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status).toBe(201)
  }
  const room = (n: number) => ({
    id: `urn:ngsi-ld:Room:${n}`,
    type: 'Room',
    t: { type: 'Property', value: n },
  })
  const notification = { endpoint: { uri: receiver.url(), accept: 'application/json' } }
  const api = `${first.httpUrl}/ngsi-ld/v1`
  await post(`${api}/subscriptions`, { type: 'Subscription', entities: [{ type: 'Room' }], notification })
  const ids = (): string[] => receiver.received.map(({ body }) => (JSON.parse(body) as { id: string }).id)

  receiver.answer(() => (receiver.received.length === 1 ? 500 : 'hang'))
  await post(`${api}/entities`, room(1))
  await expect.poll(ids).toHaveLength(2)
  await first.kill()
  receiver.answer(() => 204)
  const second = await startGatewayProcess({ dataFolder })
  await expect.poll(ids).toHaveLength(3)
  expect(new Set(ids()).size).toBe(1)

  // After all deliveries are settled, a restart reuses their numbers.
  await second.kill('SIGTERM')
  const third = await startGatewayProcess({ dataFolder })
  await post(`${third.httpUrl}/ngsi-ld/v1/entities`, room(2))
  await expect.poll(ids).toHaveLength(4)
  expect(new Set(ids()).size).toBe(2)
  await third.stop()
  await first.stop()
  await receiver.down()
})
