/** When a stream is logged as silent. */
import { expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { Stream } from './stream.ts'
import { createStreamDebugLines } from './stream-debug-lines.ts'

it('logs the first missing value of a silence, and the end of the silence', () => {
  const events: string[] = []
  const write = (line: string): void => void events.push((JSON.parse(line) as { event: string }).event)
  const debugLines = createStreamDebugLines(createLog({ level: 'debug', clock: systemClock, write }))
  const stream = { id: 'urn:ngsi-ld:IotStream:1' } as Stream
  for (const missing of [0, 1, 2, 0, 0]) debugLines.note(stream, missing)
  expect(events).toEqual(['quality.silent', 'quality.resumed'])
})
