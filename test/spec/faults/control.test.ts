/** Stop, restart and status of fault detection as its clients use them, and the streams that opt out. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { freePort } from '#test/kit/ports.ts'
import { runSelvedge } from '#test/kit/process.ts'
import { createFaultSite, observationId, patience, sensorId, streamId } from './stuck-site.ts'

const port = await freePort()
const searchPort = await freePort()
const site = createFaultSite({
  FD_HOST: '127.0.0.1',
  FD_PORT: String(port),
  SELVEDGE_SEARCH_PORT: String(searchPort),
})
beforeAll(site.start)
afterAll(site.end)

const own = httpClient(`http://127.0.0.1:${port}`)
const result = 'http://www.w3.org/ns/sosa/hasSimpleResult'
const begin = Date.now() - 12 * 3_600_000
const samples = (from: number, count: number, value: (i: number) => number) =>
  Array.from({ length: count }, (_, i) => [begin + (from + i) * 60_000, value(i)] as const)
const varying = (from: number, count: number) => samples(from, count, (i) => 20 + (i % 7))
const equal = (from: number, count: number) => samples(from, count, () => 25.5)

type Envelope = Record<'status' | 'success' | 'description', unknown> & { data: Record<string, unknown> }
const status = async (query = '') => (await own.get(`/api/status${query}`)).json() as Envelope

describe('the routes of fault detection', () => {
  beforeAll(async () => {
    await site.publish('a', [...varying(0, 120), ...equal(120, 10)])
    await vi.waitFor(async () => expect(await site.state('a')).toBe('fault'), patience)
  })

  it('take the sensor by query, by a JSON body of GET or POST, and with a slash at the end', async () => {
    const sensorID = sensorId('a')
    const json = { 'Content-Type': 'application/json' }
    for (const path of ['/api/status', '/api/status/']) {
      const answers = [
        await own.get(`${path}?sensorID=${sensorID}`),
        await own.ask('POST', path, { body: { sensorID }, headers: json }),
        await own.ask('GET', path, { body: { sensorID }, headers: json }),
      ]
      for (const answer of answers) {
        expect(answer.status).toBe(200)
        expect(answer.json()).toEqual({
          status: 'ok',
          success: true,
          description: '',
          data: {
            sensorID,
            state: 'fault',
            method: expect.any(String) as string,
            period: null,
            training: null,
          },
        })
      }
    }
  })

  it('respond with 404 to an unknown sensor, and with 400 to a malformed request', async () => {
    const wrong = [
      ['?sensorID=urn:ngsi-ld:Sensor:nobody', 404],
      ['', 400],
      ['?sensorID=not%20a%20uri', 400],
    ] as const
    for (const action of ['stopFaultDetection', 'restartFaultDetection'])
      for (const [query, code] of wrong) {
        const answer = await own.get(`/api/${action}${query}`)
        expect([query, answer.status]).toEqual([query, code])
        expect(answer.json()).toMatchObject({
          status: 'error',
          success: false,
          description: expect.stringMatching(/./) as string,
        })
      }
    const body = await own.ask('POST', '/api/stopFaultDetection', { body: ['list'] })
    expect(body.status).toBe(400)
  })

  it('stop a stream until it is restarted, through a kill', async () => {
    const stop = `/api/stopFaultDetection?sensorID=${sensorId('a')}`
    const first = (await httpClient(`http://127.0.0.1:${searchPort}`).get(stop)).json() as Envelope
    expect(first).toMatchObject({ success: true, description: '', data: { state: 'stopped' } })
    await vi.waitFor(async () => expect(await site.state('a')).toBe('stopped'), patience)
    const [fault] = await site.faults('a')
    expect(fault).toHaveProperty(['urn:selvedge:ns:end'])
    await site.killAndStart()
    const second = await own.get(stop)
    expect(second.status).toBe(200)
    expect(second.json()).toMatchObject({
      success: true,
      description: expect.stringContaining('already stopped') as string,
    })
    expect((await status()).data).toMatchObject({ running: true, streams: 1, stopped: [sensorId('a')] })
    await site.publish('a', varying(140, 20))
    expect(await site.state('a')).toBe('stopped')
  })

  it('restart a stream: it learns from history and judges again', async () => {
    const restart = await own.get(`/api/restartFaultDetection?sensorID=${sensorId('a')}`)
    expect(restart.json()).toMatchObject({ success: true, data: { sensorID: sensorId('a') } })
    await vi.waitFor(async () => {
      const { data } = await status(`?sensorID=${sensorId('a')}`)
      expect(data).toMatchObject({ training: null, method: expect.any(String) as string })
    }, patience)
    // It does not stay stopped until its next observation.
    await vi.waitFor(async () => expect(await site.state('a')).toBe('normal'), patience)
    await site.publish('a', varying(170, 1))
    await vi.waitFor(async () => expect(await site.state('a')).toBe('normal'), patience)
    expect((await status()).data).toMatchObject({ stopped: [], training: [] })
    await site.publish('a', equal(180, 12))
    await vi.waitFor(async () => expect(await site.state('a')).toBe('fault'), patience)
  })

  it('answer as those of the original component', async () => {
    for (const path of ['/', '/monitoring/status', '/monitoring/running'])
      expect((await own.get(path)).text).toBe('running')
    expect((await own.get('/monitoring/log')).text).toContain('faults.switched')
    expect((await site.client().get('/monitoring/status')).text).toBe('running')
    for (const path of ['/monitoring/setenv?var=a&val=b', '/monitoring/showenv'])
      expect((await own.get(path)).status).toBe(404)
  })

  it('name the approach of a stream and its period, also after a kill', async () => {
    const daily = samples(0, 400, (i) => Number((20 + 5 * Math.sin((2 * Math.PI * i) / 48)).toFixed(1)))
    await site.publish('p', daily)
    const isSeasonal = () =>
      vi.waitFor(async () => {
        const { data } = await status(`?sensorID=${sensorId('p')}`)
        expect(data).toMatchObject({ method: 'seasonal-arima', period: 48 * 60, training: null })
      }, patience)
    await vi.waitFor(async () => expect(await site.state('p')).toBeDefined(), patience)
    // A detector that learns waits for the choice of its approach.
    const restart = await own.get(`/api/restartFaultDetection?sensorID=${sensorId('p')}`)
    expect(restart.status).toBe(200)
    await isSeasonal()
    await site.killAndStart()
    await isSeasonal()
  })
})

describe('a stream whose sensor opts out', () => {
  it('is not judged until it opts in', async () => {
    const enable = 'https://faultdetection.org/fd#enable'
    const set = async (value: unknown) => {
      const path = `/ngsi-ld/v1/entities/${sensorId('b')}/attrs`
      expect((await site.client().send('POST', path, { [enable]: { type: 'Property', value } })).status).toBe(
        204,
      )
    }
    await site.publish('b', varying(0, 110))
    await vi.waitFor(async () => expect(await site.state('b')).toBe('normal'), patience)
    await set(0)
    await site.publish('b', equal(110, 10))
    await site.publish('c', [...varying(0, 110), ...equal(110, 10)])
    await vi.waitFor(async () => expect(await site.state('c')).toBe('fault'), patience)
    expect(await site.faults('b')).toEqual([])
    await set(1)
    await vi.waitFor(async () => expect(await site.state('b')).toBe('normal'), patience)
    await site.publish('b', [...varying(130, 10), ...equal(140, 25)])
    await vi.waitFor(async () => expect(await site.state('b')).toBe('fault'), patience)
    expect((await site.entity(streamId('b'))).id).toBe(streamId('b'))
  })
})

describe('selvedge faults import', () => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-originals-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const row = (i: number, value: string) =>
    `${new Date(begin - 86_400_000 + i * 60_000).toISOString()},${value}\n`
  const rows = Array.from({ length: 300 }, (_, i) => row(i, (20 + (i % 5) / 10).toFixed(1)))
  const run = async () => {
    const args = ['faults', 'import', folder, '--url', site.gateway().httpUrl, '--json']
    const { code, stdout, stderr } = await runSelvedge(args)
    return { code, facts: JSON.parse(stdout) as Record<string, unknown>, stderr }
  }
  const history = async () => {
    const path = `/ngsi-ld/v1/temporal/entities/${observationId('d')}?options=temporalValues&timerel=before`
    const query = `&timeAt=${new Date(begin).toISOString()}&attrs=${encodeURIComponent(result)}`
    const answer = await site.client().get(path + query)
    return (answer.json() as Record<string, { values: unknown[] }>)[result]!.values
  }

  it('adds each value of the files once, names malformed lines, and lets the detector learn', async () => {
    await site.publish('d', varying(0, 30))
    await vi.waitFor(async () => expect(await site.state('d')).toBe('normal'), patience)
    const name = sensorId('d').replaceAll(':', '_')
    writeFileSync(join(folder, `${name}.csv`), `time,value\n${rows.join('')}${row(300, 'broken')}`)
    writeFileSync(join(folder, 'urn_nobody.csv'), `time,value\n${rows[0]!}`)
    const first = await run()
    expect(first).toMatchObject({ code: 1, facts: { values: 300, learning: [sensorId('d')], problems: 2 } })
    expect(first.stderr).toContain(`${name}.csv line 302: the second column must be a number, got "broken"`)
    expect(first.stderr).toContain('urn_nobody.csv: no Sensor')
    expect(await history()).toHaveLength(300)
    rmSync(join(folder, 'urn_nobody.csv'))
    writeFileSync(join(folder, `${name}.csv`), `time,value\n${rows.join('')}`)
    expect(await run()).toMatchObject({ code: 0, facts: { values: 300, problems: 0 } })
    expect(await history()).toHaveLength(300)
    await vi.waitFor(async () => {
      const { data } = await status(`?sensorID=${sensorId('d')}`)
      expect(data).toMatchObject({ training: null, state: 'normal' })
    }, patience)
    // A thread has chosen the approach of a detector that learned so many values.
    expect(site.gateway().output()).not.toContain('choosing an approach')
    // Late values are history: they are not judged.
    expect(await site.faults('d')).toEqual([])
    // The detector knows the values of the files: 300 before, 30 of the stream.
    await site.publish('d', equal(31, 8))
    await vi.waitFor(async () => expect(await site.state('d')).toBe('fault'), patience)
  })
})
