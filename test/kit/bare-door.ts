/**
 * A door of its own on a shared writer thread, with nothing behind it but a database file, and a clock that can be
 * set. What it logs and commits is there to look at.
 */
import { join } from 'node:path'
import { isGatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { createDoor, type GroupUpkeep } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { migrate, openReader } from '#store/file/database.ts'
import { createRecords } from '#store/tables/records.ts'
import type { Writer } from '#store/writer/writer.ts'
import { settableClock, temporaryFolder } from './broker.ts'

/** For a door without upkeep. */
export const noUpkeep: GroupUpkeep = { note() {}, attach() {}, isFirst: () => false }

export interface BareDoorOptions {
  readonly lingerMs?: number
  readonly upkeep?: Partial<GroupUpkeep>
}

/** One at a time for one writer. */
export async function openBareDoor(writer: Writer, { lingerMs = 0, upkeep = {} }: BareDoorOptions = {}) {
  const { folder, remove } = temporaryFolder()
  const file = join(folder, 'tenant.db')
  migrate(file)
  await writer.open('', file, 'NORMAL')
  const clock = settableClock()
  const database = openReader(file)
  const records = createRecords(database)
  const events: string[] = []
  const metrics = createMetrics()
  const log = createLog({ level: 'info', clock, write: (line) => events.push(JSON.parse(line).event) })
  const start = { number: records.logLast(), at: 0 }
  const door = createDoor(
    { tenant: '', writer, clock, metrics, log, ...start, upkeep: { ...noUpkeep, ...upkeep }, onDamage() {} },
    { lingerMs },
  )
  return {
    door,
    records,
    database,
    clock,
    events,
    commits: metrics.counter('selvedge_commits_total'),
    async close(): Promise<void> {
      await door.close()
      database.close()
      await writer.close('')
      remove()
    },
  }
}

export type BareDoor = Awaited<ReturnType<typeof openBareDoor>>

/** A decision that writes one value, to be read by `records.meta`. */
export const put = (key: string, value: number) => (stage: Stage) => stage.write('meta.put', key, value)

/** How a promise ends: `ok` or the code of its error. */
export const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'ok',
    (error: unknown) => (isGatewayError(error) ? error.code : String(error)),
  )
