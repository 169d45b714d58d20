/** The streams of clients: what is sent, and what a confirmation confirms. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { type ClientStreams, createClientStreams, streamLaneOf } from './client-streams.ts'
import { createNotificationOutbox, type NotificationOutbox } from './notification-outbox.ts'
import { notificationTables, prepareNotifications } from './notification-statements.ts'

const lane = streamLaneOf('app')
let database: ReturnType<typeof createPluginDatabase>
let outbox: NotificationOutbox
let streams: ClientStreams

beforeEach(() => {
  database = createPluginDatabase([notificationTables])
  outbox = createNotificationOutbox({
    database,
    table: prepareNotifications(database),
    arrived: () => undefined,
    givenUp: () => undefined,
    log: createLog({ level: 'error', clock: systemClock, write: () => undefined }),
  })
  streams = createClientStreams({ outbox, clientsOf: () => ['app'], givenUp: () => undefined })
  for (const id of ['urn:a', 'urn:b']) outbox.setLanes(id, [lane])
})
afterEach(async () => {
  await outbox.close()
  database.close()
})

it('confirms up to an id of this stream; that of another stream or database confirms nothing', async () => {
  const numbers = (id: string) => outbox.next(id, outbox.through(id, lane)!, 10).map(({ n }) => n)
  for (const id of ['urn:a', 'urn:b', 'urn:a']) await outbox.append(id, Buffer.from('{}'))
  const [first, last] = numbers('urn:a')
  for (const other of [numbers('urn:b')[0]!, last! + 1000]) streams.confirm('urn:a', 'app', `${other}`)
  expect(numbers('urn:a')).toEqual([first, last])
  streams.confirm('urn:a', 'app', `${first}`)
  expect(numbers('urn:a')).toEqual([last])
})

it('sends each once, in order, to a connection that asks for more while one is being written', async () => {
  for (const n of [1, 2, 3]) await outbox.append('urn:a', Buffer.from(`${n}`))
  const sent: string[] = []
  const listening = streams.listen('urn:a', 'app', {
    write({ body }) {
      sent.push(body)
      listening.ready()
      return true
    },
    close: () => undefined,
  })
  await expect.poll(() => sent.length).toBeGreaterThanOrEqual(3)
  expect(sent).toEqual(['1', '2', '3'])
})
