/** Which requests reach a virtual sensor creator: of streams that break, heal, are stopped or deleted. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { BrokerAnswer, BrokerPort } from '#contract'
import type { FaultStream } from '#plugins/faults/streams/fault-stream.ts'
import { newRecord } from '#plugins/faults/streams/fault-stream.ts'
import { noMetadata } from '#plugins/faults/streams/watched-metadata.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createReplacementStatements, replacementTables } from './replacement-statements.ts'
import { createReplacements, type Replacements } from './replacements.ts'

const lines: string[] = []
const log = createLog({ level: 'warn', clock: systemClock, write: (line) => void lines.push(line) })
const streamOf = (id: string): FaultStream => ({
  id,
  types: [],
  sensorId: `${id}-sensor`,
  sources: [],
  isDoubtful: false,
  observations: new Set(),
  metadata: noMetadata,
  detector: undefined,
  buffered: [],
  record: newRecord(),
})

let requests: string[] = []
let answers: (path: string) => { status: number; success: boolean; description?: string } | undefined
let database: ReturnType<typeof createPluginDatabase>
let replacements: Replacements

/** The virtual sensor creator of somebody else. */
const creator: Pick<BrokerPort, 'exchange'> = {
  async exchange({ path, body }): Promise<BrokerAnswer> {
    const { sensorID } = JSON.parse(body as string) as { sensorID: string }
    requests.push(`${path.split('/')[2]} ${sensorID}`)
    const answer = answers(path)
    if (answer === undefined) return { failure: 'unreachable', reason: 'refused' } as BrokerAnswer
    return {
      status: answer.status,
      text: JSON.stringify({ success: answer.success, description: answer.description }),
      headers: new Headers(),
    } as unknown as BrokerAnswer
  },
}

function start(): void {
  const table = createReplacementStatements(database)
  replacements = createReplacements({ creator: creator as BrokerPort, table, log })
  replacements.start()
}
async function restart(): Promise<void> {
  await replacements.close()
  start()
}
const pass = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1000)

beforeEach(() => {
  vi.useFakeTimers()
  requests = []
  lines.length = 0
  answers = () => ({ status: 200, success: true })
  database = createPluginDatabase(replacementTables)
  start()
})
afterEach(async () => {
  await replacements.close()
  database.close()
  vi.useRealTimers()
})

it('asks for a replacement once, and withdraws it when the sensor is well, also after a restart', async () => {
  const stream = streamOf('a')
  replacements.entered(stream, 'fault')
  await pass()
  await restart()
  replacements.entered(stream, 'fault')
  replacements.entered(stream, 'recovering')
  await pass()
  expect(requests).toEqual(['replaceBrokenSensor a-sensor'])
  replacements.entered(stream, 'normal')
  await pass()
  replacements.entered(stream, 'normal')
  await pass()
  expect(requests.slice(1)).toEqual(['stopVirtualSensor a-sensor'])
})

it('withdraws the replacement of a stream that is stopped or deleted', async () => {
  for (const id of ['stopped', 'deleted', 'other']) replacements.entered(streamOf(id), 'fault')
  await pass()
  requests = []
  replacements.entered(streamOf('stopped'), 'stopped')
  replacements.delete({ id: 'deleted' })
  await pass()
  expect(requests.toSorted()).toEqual([
    'stopVirtualSensor deleted-sensor',
    'stopVirtualSensor stopped-sensor',
  ])
  expect(replacements.waiting()).toBe(0)
})

it('withdraws it although the creator is away at first, and the gateway restarts', async () => {
  replacements.entered(streamOf('a'), 'fault')
  await pass()
  answers = () => undefined
  replacements.delete({ id: 'a' })
  await pass()
  await restart()
  requests = []
  answers = () => ({ status: 404, success: false })
  await pass()
  expect(requests).toEqual(['stopVirtualSensor a-sensor'])
  await restart()
  await pass()
  expect(requests).toHaveLength(1)
})

it('requests only the newest wish', async () => {
  const stream = streamOf('a')
  replacements.entered(stream, 'fault')
  replacements.delete(stream)
  await pass()
  expect(requests).toEqual(['stopVirtualSensor a-sensor'])
})

it('logs the reason of a refusal, without the status 200 that a creator sends with it', async () => {
  answers = () => ({ status: 200, success: false, description: 'no metadata of the sensor' })
  replacements.entered(streamOf('a'), 'fault')
  await pass()
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { event: 'faults.not-replaced', reason: 'no metadata of the sensor' },
  ])
})
