/**
 * Resources at another broker are deleted there, even if a proxy responds for the broker until it is back.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { createCentre } from '#downward/centre.ts'
import { createCleanup } from '#downward/cleanup.ts'
import { createNotes, type Note } from '#downward/notes.ts'
import { createPeer } from '#federation/peer.ts'
import { createDownwardNotes } from '#store/tables/downward-notes.ts'
import { type BareDoor, openBareDoor } from '#test/kit/bare-door.ts'
import { immortalWriter } from '#test/kit/broker.ts'

const writer = immortalWriter()
afterAll(() => writer.end())

let bare: BareDoor
let server: Server
let asked: string[]
/** The response to the first deletion, before the broker is back. */
let first: readonly [status: number, body: string]
let isThere: boolean
beforeEach(async () => {
  bare = await openBareDoor(writer)
  ;[asked, isThere] = [[], true]
  server = createServer(({ method = '' }, response) => {
    asked.push(method)
    if (asked.length === 1) response.writeHead(first[0]).end(first[1])
    else if (method === 'GET') response.end(isThere ? '[{"id":"urn:r"}]' : '[]')
    else {
      isThere = false
      response.writeHead(204).end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await bare.close()
})

it.each([
  ['a page', [404, '<html>404</html>']],
  ['a portal', [200, '<html>Welcome</html>']],
] as const)('deletes the resource although %s responded until the broker was back', async (_, answer) => {
  first = answer
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ngsi-ld/v1`
  const notes = createNotes({ rows: createDownwardNotes(bare.database), door: bare.door })
  const note: Note = { kind: 'registration', id: 'urn:r', centre: { url }, print: '' }
  await notes.put(note)
  const { clock } = bare
  const peer = createPeer({ allowsLoopback: true })
  const centreFor = () => createCentre({ peer, clock, alias: 'a' }, note.centre)
  const log = createLog({ level: 'error', clock, write: () => undefined })
  const undoing = createCleanup({ notes, centreFor, clock, random: () => 0.5, log }, [note])
  await vi.waitFor(() => expect([...notes.all()]).toEqual([]))
  expect([isThere, asked]).toEqual([false, ['DELETE', 'GET', 'DELETE']])
  await undoing.close()
})
