/**
 * A process of its own that owes deliveries and sends them, so that a test can have it killed at a failpoint.
 * Arguments: database file, endpoint, how many.
 */
import { openOutbox } from '#test/kit/outbox.ts'

const [file = '', endpoint = '', count = '0'] = process.argv.slice(2)
const outbox = await openOutbox(file)
await outbox.owe(
  Array.from({ length: Number(count) }, (_, i) => ({ endpoint, entity: `urn:e:${i % 7}`, value: i })),
)
