/**
 * `selvedge demo` as a user starts it: live data within seconds, a site to query, and no files left behind.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RunningCommand, runSelvedge, startGatewayProcess, startSelvedge } from '#test/kit/process.ts'

const platform = 'http://www.w3.org/ns/sosa/Platform'
const observation = encodeURIComponent('http://purl.org/iot/ontology/iot-stream#StreamObservation')
const result = 'http://www.w3.org/ns/sosa/hasSimpleResult'

async function get<T>(url: string): Promise<T> {
  const answer = await fetch(url)
  expect([url, answer.status]).toEqual([url, 200])
  return (await answer.json()) as T
}

interface Entity {
  readonly id: string
  readonly location?: { readonly value: { readonly coordinates: readonly number[] } }
  readonly [name: string]: unknown
}

interface RatedStream {
  readonly id: string
  readonly quality: { readonly concordance: { readonly absolute?: number } }
}

describe('the simulated site', () => {
  const temporary = mkdtempSync(join(tmpdir(), 'selvedge-demo-test-'))
  let demo: RunningCommand
  let entities: string
  let startedAt: number

  beforeAll(async () => {
    startedAt = performance.now()
    demo = startSelvedge(['demo', '--port', '0', '--mqtt-port', '0'], {
      env: { TMPDIR: temporary, SELVEDGE_PROVISIONING_MODE: 'quarantine', PORT: '1' },
    })
    const [, url] = await demo.saying(/^HTTP {2}(http:\/\/\S+)\/ngsi-ld\/v1$/m)
    entities = `${url}/ngsi-ld/v1/entities`
    await demo.saying(/^ {2}site: 12 devices/m)
  })

  afterAll(async () => {
    await demo?.kill()
    rmSync(temporary, { recursive: true })
  })

  it('shows live data within 30 s, with a rate and values', async () => {
    const [line] = await demo.saying(
      /^([1-9]\d*|0\.[1-9])[\d.]* observations\/s \| .* entities \| .*$/m,
      30_000,
    )
    expect(performance.now() - startedAt).toBeLessThan(30_000)
    expect(line).toMatch(/\| \S+ \S+ -?\d+(\.\d+)?( (°C|%|ppm|hPa|m\/s|m|l\/s|W|Wh|W\/m²))?$/)
  })

  it('has a dozen devices with their places', async () => {
    await expect
      .poll(
        async () =>
          (await get<Entity[]>(`${entities}?type=${platform}`)).filter(
            ({ id, location }) => location !== undefined && !id.endsWith(':VS'),
          ).length,
      )
      .toBe(12)
    const near = `${entities}?type=${platform}&georel=near;maxDistance==80&geometry=Point&coordinates=[8.0012,52.0007]`
    const ids = (await get<Entity[]>(near)).map(({ id }) => id).filter((id) => !id.endsWith(':VS'))
    expect(ids.toSorted()).toEqual([
      'urn:ngsi-ld:Platform:greenhouse-1',
      'urn:ngsi-ld:Platform:greenhouse-2',
      'urn:ngsi-ld:Platform:solar-roof',
    ])
  })

  it('responds to all suggested requests, and has a page for GraphQL', async () => {
    const invited = [...demo.output().matchAll(/curl -g '(\S+)'/g)].map(([, url]) => url!)
    expect(invited).toHaveLength(5)
    for (const url of invited) {
      const isAnswered = async () => JSON.stringify(await get<object>(url)).includes('urn:ngsi-ld:')
      await expect.poll(isAnswered).toBe(true)
    }
    const [, page] = await demo.saying(/^GraphQL, in a browser {2}(http:\S+\/)$/m)
    const { status, headers } = await fetch(page!)
    expect([status, headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')])
  })

  it('has a history with an outage at night and a stuck sensor', async () => {
    const temporal = entities.replace('/entities', '/temporal/entities')
    const history = async (name: string) => {
      const url = `${temporal}/urn:ngsi-ld:StreamObservation:${name}?options=temporalValues&timerel=after&timeAt=2020-01-01T00:00:00Z`
      return (await get<Record<string, { values: [number, string][] }>>(url))[result]!.values
    }
    expect((await history('greenhouse-1:temperature')).length).toBeGreaterThanOrEqual(144)
    expect((await history('soil-south:moisture')).length).toBeLessThan(130)
    expect(new Set((await history('cold-store:humidity')).map(([value]) => value))).toEqual(new Set([87.3]))
    const [stale] = await history('meadow-logger:temperature')
    expect(Date.now() - Date.parse(stale![1])).toBeGreaterThan(2.9 * 86_400_000)
  })

  it('reports its stuck sensor, and the sent, acknowledged and stored values of an outage', async () => {
    await demo.saying(/^ {2}site: STUCK SENSOR: cold-store humidity is 87\.3 % in all 144 values/m)
    await demo.saying(/^ {2}site: OUTAGE BEGINS: soil-north/m)
    const [, messages, values, acknowledged, stored] = await demo.saying(
      /^ {2}site: OUTAGE ENDS: soil-north .*; (\d+) messages with (\d+) values sent late, (\d+) messages acknowledged, (\d+) values stored: nothing was lost$/m,
      60_000,
    )
    expect(Number(messages)).toBeGreaterThan(1)
    expect([acknowledged, values, stored]).toEqual([messages, String(2 * Number(messages)), values])
    expect(demo.output().match(/STUCK SENSOR: /g)).toHaveLength(1)
  })

  it('tells a sensor that sticks, and replaces it by a virtual one', async () => {
    await demo.saying(/^ {2}site: greenhouse-2 temperature STICKS/m, 60_000)
    await demo.saying(/^ {2}gateway: FAULT: greenhouse-2 temperature: stuck$/m, 60_000)
    await demo.saying(/^ {2}gateway: VIRTUAL SENSOR replaces greenhouse-2 temperature$/m, 60_000)
    await demo.saying(/^ {2}site: greenhouse-2 temperature IS WELL AGAIN/m, 60_000)
    await demo.saying(/^ {2}gateway: FAULT OVER: greenhouse-2 temperature: stuck$/m, 60_000)
  })

  it('rates the stuck sensor as discordant with its neighbours', async () => {
    const concordances = async () => {
      const { result: streams } = await get<{ result: readonly RatedStream[] }>(
        entities.replace('/ngsi-ld/v1/entities', '/quality/api/streams'),
      )
      return Object.fromEntries(streams.map(({ id, quality }) => [id, quality.concordance.absolute]))
    }
    const stream = (device: string): string => `urn:ngsi-ld:IotStream:${device}:humidity`
    await expect.poll(async () => (await concordances())[stream('cold-store')]).toBe(0)
    for (const device of ['greenhouse-1', 'greenhouse-2', 'weather-mast'])
      await expect.poll(async () => (await concordances())[stream(device)]).toBeGreaterThan(0.5)
  })

  it('stops on Ctrl-C and leaves no files behind', async () => {
    const inside = readdirSync(temporary)
    expect(inside).toHaveLength(1)
    expect(await demo.kill('SIGINT')).toEqual({ code: 0, signal: null })
    expect(readdirSync(temporary)).toEqual([])
    await expect(fetch(entities)).rejects.toThrow('fetch failed')
  })
})

describe('a site without its gateway', () => {
  it('stops and reports why', async () => {
    const gateway = await startGatewayProcess()
    const site = startSelvedge(['demo', '--site', gateway.httpUrl, '--mqtt-port', String(gateway.mqttPort)])
    await site.saying(/12 devices/)
    await gateway.kill()
    await site.saying(/the connection to the MQTT broker ended|no answer from http/)
    expect(await site.exited).toEqual({ code: 1, signal: null })
    await gateway.stop()
  })
})

describe('recorded series', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-series-'))
    mkdirSync(join(folder, 'csv'))
    writeFileSync(
      join(folder, 'csv/no2.csv'),
      'time,North,South\n2015-03-01T00:00,44,9\n2015-03-01T01:00,20,\n2015-03-01T02:00,21.5,8\n',
    )
    writeFileSync(join(folder, 'csv/stations.csv'), 'station,longitude,latitude\nNorth,116.397,39.982\n')
    writeFileSync(join(folder, 'csv/notes.csv'), 'nothing\n')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('are replayed with their own times, and kept in the folder of --keep', async () => {
    const data = join(folder, 'kept')
    const flags = [
      '--data',
      join(folder, 'csv'),
      '--speed',
      'max',
      '--keep',
      data,
      '--port',
      '0',
      '--mqtt-port',
      '0',
    ]
    const demo = startSelvedge(['demo', ...flags])
    const [, url] = await demo.saying(/^HTTP {2}(http:\/\/\S+)$/m)
    await demo.saying(/site: skipped notes\.csv: it has no columns or no rows/)
    await demo.saying(/site: 2 devices, 5 messages, 1 places/)
    await demo.saying(/site: replay complete/)
    const [north] = await get<Entity[]>(
      `${url}/entities?type=${observation}&id=urn:ngsi-ld:StreamObservation:North:no2`,
    )
    expect(north![result]).toMatchObject({ value: 21.5, unitCode: 'GQ', observedAt: '2015-03-01T02:00:00Z' })
    const located = await get<Entity[]>(`${url}/entities?type=${platform}&options=keyValues`)
    expect(
      located.map(({ id, location }) => [
        id,
        (location as { coordinates?: number[] } | undefined)?.coordinates,
      ]),
    ).toEqual(
      expect.arrayContaining([
        ['urn:ngsi-ld:Platform:North', [116.397, 39.982]],
        ['urn:ngsi-ld:Platform:South', undefined],
      ]),
    )
    expect(await demo.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    expect(existsSync(join(data, 'selvedge.db'))).toBe(true)
    const { stdout } = await runSelvedge(['status', '--data', data, '--http-port', '1', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ folder: { tenants: [{ counts: { streams: 2 } }] } })
  })

  it('stop after --duration', async () => {
    const flags = ['--data', join(folder, 'csv'), '--duration', '6', '--port', '0', '--mqtt-port', '0']
    const { code, stdout } = await runSelvedge(['demo', ...flags])
    expect(code).toBe(0)
    expect(stdout).toContain('site: 2 devices')
  })

  it.each([
    [['--data', '/nowhere'], 64, '/nowhere cannot be read'],
    [['--data', import.meta.dirname], 64, 'contains no CSV file'],
    [['--speed', 'fast'], 64, '--speed expects a number greater than 0, or max, got "fast"'],
    [['--step', '0'], 64, '--step expects a number greater than 0'],
    [['--port', '70000'], 64, '--port expects a port'],
    [['--site', 'localhost'], 64, '--site expects a URL'],
    [['--site', 'http://127.0.0.1:1', '--mqtt-port', '1'], 1, 'no MQTT broker at 127.0.0.1:1'],
  ])('%j ends with %i', async (flags, expected, words) => {
    const ports =
      flags.includes('--port') || flags.includes('--site') ? [] : ['--port', '0', '--mqtt-port', '0']
    const { code, stdout, stderr } = await runSelvedge(['demo', ...flags, ...ports])
    expect(stdout + stderr).toContain(words)
    expect(code).toBe(expected)
  })
})
