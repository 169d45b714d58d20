/** Uplink options from the pairs of an endpoint; each rejection names the key. */
import { describe, expect, it } from 'vitest'
import { brokerBase, checkUplink, parseUplinkOptions } from './uplink-options.ts'

const pairs = (all: Record<string, string>) =>
  Object.entries(all).map(([key, value]) => ({ key: `selvedge:${key}`, value }))

describe('options of an uplink', () => {
  it('are defaults if none are given', () => {
    expect(parseUplinkOptions()).toEqual({ windows: [], thinSeconds: 60, isPaused: false })
  })

  it('are parsed from the pairs, several of which may define windows', () => {
    const given = [
      ...pairs({ mode: 'uplink', rate: '50', 'bytes-per-day': '1000000', 'budget-hours': '0.5' }),
      { key: 'selvedge:window', value: '0 2 * * * for 90' },
      { key: 'selvedge:window', value: '0 14 * * 6,7 for 30' },
      { key: 'MQTT-QoS', value: '1' },
    ]
    expect(parseUplinkOptions(given)).toEqual({
      rate: 50,
      bytesPerDay: 1_000_000,
      budgetHours: 0.5,
      windows: [
        { cron: '0 2 * * *', minutes: 90 },
        { cron: '0 14 * * 6,7', minutes: 30 },
      ],
      thinSeconds: 60,
      isPaused: false,
    })
  })

  it.each([
    [{ rate: 'fast' }, 'selvedge:rate'],
    [{ rate: '0' }, 'selvedge:rate'],
    [{ window: '0 25 * * * for 90' }, 'selvedge:window'],
    [{ window: '0 2 * * *' }, 'selvedge:window'],
    [{ paused: 'yes' }, 'selvedge:paused'],
    [{ 'bytes-per-week': '7' }, 'selvedge:bytes-per-week'],
  ])('reject %j and name %s', (wrong, key) => {
    expect(() => parseUplinkOptions(pairs(wrong as unknown as Record<string, string>))).toThrow(key)
  })

  it.each(['http://centre/ngsi-ld/v1/entities', 'mqtt://centre/ngsi-ld/v1', 'http://c/?a=/ngsi-ld/v1'])(
    'reject %s as the address of a broker',
    (uri) => {
      expect(() => checkUplink({ uri, notifierInfo: pairs({ mode: 'uplink' }) })).toThrow('endpoint.uri')
      expect(() => checkUplink({ uri })).not.toThrow()
    },
  )

  it.each([
    ['https://centre', 'https://centre/ngsi-ld/v1'],
    ['https://centre/', 'https://centre/ngsi-ld/v1'],
    ['http://centre:1026/ngsi-ld/v1', 'http://centre:1026/ngsi-ld/v1'],
    ['http://centre/broker/ngsi-ld/v1/', 'http://centre/broker/ngsi-ld/v1'],
    ['http://centre/broker', 'http://centre/broker/ngsi-ld/v1'],
  ])('derive from %s the base address %s', (uri, base) => {
    expect(() => checkUplink({ uri, notifierInfo: pairs({ mode: 'uplink' }) })).not.toThrow()
    expect(brokerBase(uri)).toBe(base)
  })

  it('place uploaded entities below a scope', () => {
    expect(parseUplinkOptions(pairs({ scope: '/site-7' }))).toMatchObject({ scope: '/site-7' })
    expect(parseUplinkOptions(pairs({ scope: 'plant/7' }))).toMatchObject({ scope: '/plant/7' })
    expect(() => parseUplinkOptions(pairs({ scope: '/site 7' }))).toThrow(/selvedge:scope/)
  })
})
