/** When a client counts as stalled, and when as backlogged. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createOutlet } from './outlet.ts'

afterEach(restoreLimits)

it('a client is not stalled when it is first checked while an answer is pending', async () => {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const client = connect((listener.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = (await once(listener, 'connection')) as [Socket]
  const turnEnds: (() => void)[] = []
  const outlet = createOutlet(socket, {
    atTurnEnd: (action) => void turnEnds.push(action),
    backlog: { bytes: 0 },
  })
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

it('while the total backlog is too large, clients with more than a little unsent data are backlogged', async () => {
  setLimit('subscribersBacklogBytesMax', 300_000)
  const sockets: Socket[] = []
  const listener = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const clients = [0, 1, 2].map(() => connect(port, '127.0.0.1').pause())
  await expect.poll(() => sockets.length).toBe(3)
  const backlog = { bytes: 0 }
  const turnEnds: (() => void)[] = []
  const outlets = sockets.map((socket) =>
    createOutlet(socket, { atTurnEnd: (action) => void turnEnds.push(action), backlog }),
  )
  const backlogged = (): readonly boolean[] => outlets.map((outlet) => outlet.isBacklogged())
  outlets[0]!.write(Buffer.alloc(200_000))
  outlets[1]!.write(Buffer.alloc(1000))
  expect(backlogged()).toEqual([false, false, false])
  outlets[2]!.write(Buffer.alloc(200_000))
  expect(backlogged()).toEqual([true, false, true])
  for (const end of turnEnds) end()
  for (const client of clients) client.resume()
  await expect.poll(() => backlog.bytes).toBe(0)
  expect(backlogged()).toEqual([false, false, false])
  for (const outlet of outlets) outlet.close()
  listener.close()
})
