/** The sensor of the simulated site that sticks for a while. */
import { expect, it } from 'vitest'
import { demoDevices, messagesOf } from './demo-devices.ts'
import { stickingSensor, stuckAt, stuckSince } from './demo-sticking.ts'

const start = Date.UTC(2026, 5, 1)
const device = demoDevices.find(({ id }) => id === stickingSensor.device)!

it('is stuck for 40 seconds, 20 seconds after the start and every five minutes', () => {
  const at = (seconds: number) => stuckSince(start, start + seconds * 1000)
  for (const seconds of [0, 19, 60, 299, 319, 360]) expect(at(seconds)).toBeUndefined()
  for (const seconds of [20, 40, 59]) expect(at(seconds)).toBe(start + 20_000)
  expect(at(321)).toBe(start + 320_000)
})

it('repeats the value of the field that sticks, and varies in the others', () => {
  const values = (field: string) =>
    [20, 22, 24, 26].map((seconds) => {
      const [message] = messagesOf(stuckAt(device, stickingSensor.field, start), [start + seconds * 1000])
      const records = JSON.parse(message!.payload) as { n: string; v: number }[]
      return records.find(({ n }) => n === field)!.v
    })
  expect(new Set(values(stickingSensor.field)).size).toBe(1)
  expect(new Set(values('co2')).size).toBe(4)
})
