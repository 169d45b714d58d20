/** How long a client has taken nothing is counted from when something was there for it, not from when the gateway began. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createOutlet } from './outlet.ts'

it('a client that is looked at for the first time as it is answered is not late', async () => {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const client = connect((listener.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = (await once(listener, 'connection')) as [Socket]
  const turnEnds: (() => void)[] = []
  const outlet = createOutlet(socket, (action) => void turnEnds.push(action))
  outlet.write(Buffer.from('connack'))
  const upMs = 3_600_000
  expect(outlet.stalledMs(upMs)).toBe(0)
  expect(outlet.stalledMs(upMs + 1000)).toBe(1000)
  for (const end of turnEnds) end()
  await once(client, 'data')
  expect(outlet.stalledMs(upMs + 2000)).toBe(0)
  outlet.close()
  await once(client, 'close')
  listener.close()
})
