/** Members that contain the time of a record under a usual name, and values that only have such a name. */
import { describe, expect, it } from 'vitest'
import type { Frame } from '#contract'
import { json } from './decoder.ts'
import { checkJsonSettings } from './settings.ts'

const receivedAt = Date.parse('2026-11-22T18:00:00Z')
const noon = Date.parse('2026-11-22T12:00:00Z')

function decode(payload: unknown, source: object = {}) {
  const { settings, problems } = checkJsonSettings([{ topic: 'x/{device}', fields: 'auto', ...source }])
  if (settings === undefined) throw new Error(JSON.stringify(problems))
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
  const frame: Frame = {
    topic: 'x/d',
    payload: Buffer.from(text),
    receivedAt,
    retained: false,
    transport: 'mqtt' as const,
  }
  const { readings, problems: wrong } = json.decode(frame, settings)
  return {
    fields: readings.map(({ field }) => field),
    times: [...new Set(readings.map(({ observedAt }) => observedAt))],
    wrong,
  }
}

describe('the time of a record without a time path', () => {
  it.each([
    [{ time: '2026-11-22T12:00:00Z', t: 1 }],
    [{ Time: '2026-11-22 13:00:00+01:00', t: 1 }],
    [{ timestamp: noon / 1000, t: 1 }],
    [{ ts: noon, t: 1 }],
    [{ TS: String(noon * 1000), t: 1 }],
    [{ datetime: '2026-11-22T12:00:00.000Z', t: 1 }],
    [{ date: '2026-11-22T12:00Z', t: 1 }],
    ['time,t\n2026-11-22T12:00:00Z,1'],
    ['time;t\n2026-11-22 12:00:00Z;1,5'],
    ['ts=1795348800 t=1'],
  ])('is read: %o', (payload) => {
    expect(decode(payload)).toEqual({ fields: ['t'], times: [noon], wrong: [] })
  })

  it('uses the zone of the source, also with listed fields', () => {
    const payload = { time: '2026-11-22T13:00:00', t: 1 }
    const vienna = { timeZone: 'Europe/Vienna' }
    expect(decode(payload, vienna)).toEqual({ fields: ['t'], times: [noon], wrong: [] })
    const fields = [{ path: 't' }]
    expect(decode(payload, { ...vienna, fields })).toEqual({ fields: ['t'], times: [noon], wrong: [] })
    expect(decode(payload, { fields }).times).toEqual([undefined])
  })

  it('is read from each line of a table', () => {
    const table = 'time,temperature,humidity\n2026-11-22T12:00:00Z,21,40\n2026-11-22T12:00:01Z,22,41'
    expect(decode(table)).toMatchObject({
      fields: ['temperature', 'humidity', 'temperature', 'humidity'],
      times: [noon, noon + 1000],
    })
  })

  it('is the first usual name, in the order of the guide', () => {
    const names = ['time', 'timestamp', 'datetime', 'ts', 'date']
    for (const [at, name] of names.slice(1).entries())
      expect(decode({ [name]: noon + 60_000, [names[at]!]: noon, t: 1 }).times).toEqual([noon])
  })

  it('is the reception if the zone is unknown or the clock was not set', () => {
    for (const time of ['2026-11-22T13:00:00', '1970-01-01T00:00:05Z', '2000-01-01T00:00:05Z'])
      expect(decode({ time, t: 1 })).toEqual({ fields: ['t'], times: [undefined], wrong: [] })
  })

  it('is absent if such a member contains no time', () => {
    for (const time of [12.5, 'noon', 20261122, true, '2026-13-41T00:00:00Z'])
      expect(decode({ time, t: 1 })).toEqual({ fields: ['time', 't'], times: [undefined], wrong: [] })
    expect(decode({ ts: 5, date: '2026-11-22T12:00:00Z' })).toMatchObject({ fields: ['ts'], times: [noon] })
  })
})

it('reports an empty payload as empty', () => {
  for (const payload of ['auto', 'json', 'csv', 'text'])
    expect(decode(' ', { payload }).wrong).toEqual([{ reason: 'the payload is empty' }])
})
