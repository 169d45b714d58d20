/** The readings of sources that predictions look back for: their order, their number, and faulty streams. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createSourceReadings } from './source-readings.ts'

const source = (name: string) => ({
  id: `urn:ngsi-ld:Sensor:${name}`,
  observation: `urn:ngsi-ld:StreamObservation:${name}`,
  stream: `urn:ngsi-ld:IotStream:${name}`,
  distance: 1,
  longitude: 0,
  latitude: 0,
})
const one = source('one')
const minuteMs = 60_000
const dayMs = 86_400_000

describe('readings of a source', () => {
  it('are ordered by time, whenever they arrive', () => {
    const readings = createSourceReadings({ now: () => dayMs })
    readings.add([one], 10 * minuteMs)
    for (const minute of [3, 1, 2, 3])
      readings.observe(one.observation, { time: minute * minuteMs, value: minute })
    expect(readings.latest(one)).toEqual({
      time: 3 * minuteMs,
      value: 3,
      earlier: [
        { time: minuteMs, value: 1 },
        { time: 2 * minuteMs, value: 2 },
      ],
    })
  })

  it('are bounded, and reach back as far as a prediction looks', () => {
    const readings = createSourceReadings({ now: () => dayMs })
    const lookbackMs = 3_600_000
    readings.add([one], lookbackMs)
    for (let second = 0; second < 7200; second++)
      readings.observe(one.observation, { time: second * 1000, value: second })
    const { time, earlier } = readings.latest(one)!
    expect(time).toBe(7_199_000)
    expect(earlier!.length).toBeLessThan(limits.virtualReadingsMax.value)
    expect(earlier![0]!.time).toBeLessThanOrEqual(time - lookbackMs)
    const gaps = earlier!.slice(1).map((reading, i) => reading.time - earlier![i]!.time)
    expect(Math.max(...gaps)).toBeLessThan(lookbackMs / 100)
  })

  it('are not those of a clock that is more than a day ahead', () => {
    const readings = createSourceReadings({ now: () => dayMs })
    readings.add([one], minuteMs)
    for (const time of [dayMs, 900 * dayMs]) readings.observe(one.observation, { time, value: time })
    expect(readings.latest(one)?.time).toBe(dayMs)
  })

  it('are none while its stream is faulty, or after the entity was deleted', () => {
    const readings = createSourceReadings({ now: () => dayMs })
    readings.add([one], minuteMs)
    readings.observe(one.observation, { time: 1, value: 1 })
    readings.setFaulty(one.stream, true)
    expect(readings.latest(one)).toBeUndefined()
    readings.setFaulty(one.stream, false)
    expect(readings.latest(one)).toMatchObject({ value: 1 })
    readings.forget(one.observation)
    expect(readings.latest(one)).toBeUndefined()
  })

  it('stay as long as one virtual sensor uses them', () => {
    const readings = createSourceReadings({ now: () => dayMs })
    readings.add([one], minuteMs)
    readings.add([one, source('two')], minuteMs)
    readings.observe(one.observation, { time: 1, value: 1 })
    readings.remove([one])
    expect(readings.latest(one)).toMatchObject({ value: 1 })
    readings.remove([one, source('two')])
    expect(readings.latest(one)).toBeUndefined()
    expect(readings.has(one.observation)).toBe(false)
  })
})
