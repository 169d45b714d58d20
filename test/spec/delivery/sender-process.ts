/**
 * A separate process that commits deliveries, sends them and ends when all are settled, so that a test can
 * kill it at a failpoint. Arguments: database file, endpoint, number of deliveries, and optionally the number
 * of entities per batch. Each batch is committed separately and sent in requests of up to four entities.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openOutbox } from '#test/kit/outbox.ts'

const [file = '', endpoint = '', count = '0', ofBatch = '0'] = process.argv.slice(2)
const size = Number(ofBatch)
const outbox = await openOutbox(file, size > 0 ? { sharing: 4 } : {})
const pending = (i: number) => ({ endpoint, entity: `urn:e:${i % (size || 7)}`, value: i })
if (size === 0) await outbox.enqueue(Array.from({ length: Number(count) }, (_, i) => pending(i)))
for (let from = 0; size > 0 && from < Number(count); from += size)
  await outbox.enqueue(Array.from({ length: size }, (_, i) => ({ ...pending(from + i), batch: from })))
while (outbox.rows() > 0) await sleep(20)
await outbox.close()
