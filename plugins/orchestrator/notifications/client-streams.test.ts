/** The streams of clients: what a confirmation confirms. */
import { expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createClientStreams, streamLaneOf } from './client-streams.ts'
import { createNotificationOutbox } from './notification-outbox.ts'
import { notificationTables, prepareNotifications } from './notification-statements.ts'

it('confirms up to an id of this stream; that of another stream or database confirms nothing', async () => {
  const database = createPluginDatabase([notificationTables])
  const outbox = createNotificationOutbox({
    database,
    table: prepareNotifications(database),
    arrived: () => undefined,
    givenUp: () => undefined,
    log: createLog({ level: 'error', clock: systemClock, write: () => undefined }),
  })
  const streams = createClientStreams({ outbox, clientsOf: () => ['app'], givenUp: () => undefined })
  const numbers = (id: string) => outbox.next(id, outbox.through(id, lane)!, 10).map(({ n }) => n)
  const lane = streamLaneOf('app')
  for (const id of ['urn:a', 'urn:b']) outbox.setLanes(id, [lane])
  for (const id of ['urn:a', 'urn:b', 'urn:a']) await outbox.append(id, Buffer.from('{}'))
  const [first, last] = numbers('urn:a')
  for (const other of [numbers('urn:b')[0]!, last! + 1000]) streams.confirm('urn:a', 'app', `${other}`)
  expect(numbers('urn:a')).toEqual([first, last])
  streams.confirm('urn:a', 'app', `${first}`)
  expect(numbers('urn:a')).toEqual([last])
  await outbox.close()
  database.close()
})
