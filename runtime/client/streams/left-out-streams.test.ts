/** What an operator sees of streams beyond the ceiling of a plugin. */
import { expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { createLeftOutStreams } from './left-out-streams.ts'

it('logs once that streams are left out, and counts them until they are deleted or taken', () => {
  const lines: string[] = []
  const log = createLog({ level: 'info', clock: systemClock, write: (line) => void lines.push(line) })
  const metrics = createMetrics()
  const leftOut = createLeftOutStreams({ plugin: 'faults', most: 2, metrics, log })
  const shown = () => /left_out\{plugin="faults"\} (\d+)/.exec(metrics.expose())?.[1]
  expect(leftOut.hasRoom(1, 'a')).toBe(true)
  expect([leftOut.complaints(), shown(), lines.length]).toEqual([[], '0', 0])
  for (const id of ['b', 'c', 'b']) expect(leftOut.hasRoom(2, id)).toBe(false)
  expect(leftOut.complaints()).toEqual(['2 streams are left out: faults takes 2 at most'])
  expect(shown()).toBe('2')
  expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual([
    'plugin.streams-left-out',
  ])
  leftOut.delete('b')
  expect(leftOut.hasRoom(1, 'c')).toBe(true)
  expect([leftOut.complaints(), shown()]).toEqual([[], '0'])
})
