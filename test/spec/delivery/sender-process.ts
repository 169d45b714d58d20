/**
 * A process of its own that owes deliveries, sends them and ends when all are settled, so that a test can have it
 * killed at a failpoint. Arguments: database file, endpoint, how many.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openOutbox } from '#test/kit/outbox.ts'

const [file = '', endpoint = '', count = '0'] = process.argv.slice(2)
const outbox = await openOutbox(file)
await outbox.owe(
  Array.from({ length: Number(count) }, (_, i) => ({ endpoint, entity: `urn:e:${i % 7}`, value: i })),
)
while (outbox.rows() > 0) await sleep(20)
await outbox.close()
