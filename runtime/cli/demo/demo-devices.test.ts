/** The simulated site: a dozen devices, daily cycles, noise, silence, a stuck sensor, decodable payloads. */
import { describe, expect, it } from 'vitest'
import { json } from '#bridges/json/decoder.ts'
import { checkJsonSettings } from '#bridges/json/settings.ts'
import { senml } from '#bridges/senml/decoder.ts'
import { loadSettings } from '#config/load/load.ts'
import { correlationOf } from '#statistics/correlation.ts'
import { demoDevices, demoSettings, messagesOf } from './demo-devices.ts'

const minute = 60_000
const day = 24 * 60 * minute
const midnight = Date.UTC(2026, 5, 1)
const device = (id: string) => demoDevices.find((one) => one.id === id)!
const through = (count: number, step: number) => Array.from({ length: count }, (_, i) => midnight + i * step)

describe('the simulated site', () => {
  it('has a dozen devices at different places, with both payload formats', () => {
    expect(demoDevices).toHaveLength(12)
    expect(new Set(demoDevices.map(({ place }) => place.join())).size).toBe(12)
    expect(new Set(demoDevices.map(({ speaks }) => speaks))).toEqual(new Set(['senml', 'json']))
  })

  it('has a daily cycle with noise, and the same value for the same instant', () => {
    const [temperature] = device('greenhouse-1').fields
    const values = through(144, 10 * minute).map((time) => temperature!.at(time))
    const warmest = values.indexOf(Math.max(...values)) / 6
    expect(warmest).toBeGreaterThan(12)
    expect(warmest).toBeLessThan(16)
    expect(Math.max(...values) - Math.min(...values)).toBeGreaterThan(9)
    expect(new Set(values).size).toBe(144)
    expect(through(144, 10 * minute).map((time) => temperature!.at(time))).toEqual(values)
    expect(Math.abs(temperature!.at(midnight) - temperature!.at(midnight + day))).toBeLessThan(0.7)
  })

  it('has air temperatures that vary together at the pace of live values', () => {
    const live = (id: string) =>
      Float64Array.from({ length: 300 }, (_, i) =>
        device(id)
          .fields.at(id === 'barn-air' ? 1 : 0)!
          .at(midnight + i * 2000),
      )
    for (const id of ['greenhouse-1', 'weather-mast', 'barn-air'])
      expect(correlationOf(live('greenhouse-2'), live(id)).correlation).toBeGreaterThan(0.6)
  })

  it('has no sensor that seems to stick at the pace of live values, but the stuck one', () => {
    const sticking = demoDevices.flatMap(({ id, fields, everySeconds }) =>
      fields.flatMap(({ name, digits, at }) => {
        const texts = Array.from({ length: 7200 / everySeconds }, (_, i) =>
          at(midnight + day / 2 + i * everySeconds * 1000).toFixed(digits),
        )
        const isAtRest = Number(texts[0]) === 0
        const sticks = texts.slice(7).some((_, i) => new Set(texts.slice(i, i + 8)).size === 1)
        return sticks && !isAtRest ? [`${id} ${name}`] : []
      }),
    )
    expect(sticking).toEqual(['cold-store humidity'])
  })

  it('has a device that is silent at night', () => {
    const silent = (time: number) => device('soil-south').isSilent(midnight + time)
    expect([1, 2, 4.9, 5].map((hour) => silent(hour * 60 * minute))).toEqual([false, true, true, false])
    expect(device('soil-north').isSilent(midnight + 3 * 60 * minute)).toBe(false)
  })

  it('has a stuck sensor and a working one in the same device', () => {
    const [temperature, humidity] = device('cold-store').fields
    expect(new Set(through(100, minute).map((time) => humidity!.at(time)))).toEqual(new Set([87.3]))
    expect(new Set(through(100, minute).map((time) => temperature!.at(time))).size).toBe(100)
  })

  it('sends only payloads that the bridges decode completely', async () => {
    const loaded = await loadSettings({ env: {}, folder: '/nowhere', flags: settingFlags() })
    expect(loaded.mistakes).toBeUndefined()
    const sources = checkJsonSettings((demoSettings() as { bridges: { json: unknown } }).bridges.json)
      .settings!
    for (const one of demoDevices) {
      const times = [midnight, midnight + 10 * minute]
      const readings = messagesOf(one, times).flatMap(({ topic, payload }) => {
        const frame = {
          topic,
          payload: Buffer.from(payload),
          receivedAt: midnight + day,
          retained: false,
          transport: 'mqtt' as const,
        }
        const decoded = one.speaks === 'senml' ? senml.decode(frame, undefined) : json.decode(frame, sources)
        expect(decoded.problems).toEqual([])
        return decoded.readings
      })
      expect(readings.map(({ field, observedAt }) => [field, observedAt])).toEqual(
        times.flatMap((time) => one.fields.map(({ name }) => [name, time])),
      )
      expect(new Set(readings.map((reading) => reading.device))).toEqual(new Set([one.id]))
      if (one.speaks === 'senml') expect(readings[0]!.unitCode).toBe(one.fields[0]!.unitCode)
    }
  })
})

function settingFlags() {
  const { bridges, provisioning } = demoSettings() as Record<string, Record<string, unknown>>
  return [
    { path: 'bridges.json', text: JSON.stringify(bridges!['json']), source: 'demo' },
    { path: 'provisioning.devices', text: JSON.stringify(provisioning!['devices']), source: 'demo' },
  ]
}

it('states no update interval, since the history has another one than the live values', () => {
  expect(JSON.stringify(demoSettings())).not.toMatch(/updateInterval/)
})
