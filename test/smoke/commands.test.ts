/** check, status and decode as processes: what they tell, in words and in JSON, and by their exit code. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { version } from '#base/register/version.ts'
import { type GatewayProcess, runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

let folder: string
let data: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-commands-'))
  data = join(folder, 'data')
  return () => rmSync(folder, { recursive: true })
})

const selvedge = (args: string[], input?: string | Uint8Array, env: Record<string, string> = {}) =>
  runSelvedge(args, {
    env: { SELVEDGE_DATA: data, ...env },
    cwd: folder,
    ...(input !== undefined && { input }),
  })

const freePorts = ['--http-port', '0', '--mqtt-port', '0']

describe('selvedge check', () => {
  it('is content with nothing', async () => {
    const { code, stdout, stderr } = await selvedge(['check', ...freePorts])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/settings +ok, from defaults and environment/)
    expect(stdout).toContain(`${data} will be made`)
    expect(readdirSync(folder)).toEqual([])
  })

  it('tells all mistakes in JSON', async () => {
    writeFileSync(join(folder, 'selvedge.yaml'), 'http: {prot: 1, port: x}\n')
    const { code, stdout } = await selvedge(['check', '--json'])
    expect(code).toBe(78)
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      mistakes: [
        { path: 'http.prot', value: '1', nearest: 'http.port', source: join(folder, 'selvedge.yaml') },
        { path: 'http.port', value: '"x"', expected: expect.stringContaining('a port') as string },
      ],
    })
  })

  it('finds everything that is in the way at once', async () => {
    mkdirSync(data, { mode: 0o700 })
    chmodSync(data, 0o777)
    writeFileSync(join(data, 'http-token'), 'x\n')
    chmodSync(join(data, 'http-token'), 0o644)
    writeFileSync(join(data, 'mqtt-passwords'), 'alice:secret\n', { mode: 0o600 })
    const config = {
      bridgeIn: [{ url: 'mqtts://b', topics: ['a'], username: 'u', passwordFile: 'pw', caFile: 'ca.pem' }],
      uplinks: [{ id: 'up', url: 'https://c', headerFiles: { 'X-Key': 'key' } }],
      indexing: {
        brokers: [
          {
            url: 'https://b',
            identity: { url: 'https://idm', name: 'n', passwordFile: 'idm' },
            caFile: 'b.pem',
          },
        ],
      },
      search: { backend: 'https://s', tokenFile: 'search' },
      register: [{ url: 'https://c', types: ['T'], endpoint: 'https://g', sourceTokenFile: 'own' }],
    }
    writeFileSync(join(folder, 'selvedge.json'), JSON.stringify(config))
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const { code, stdout } = await selvedge([
      'check',
      '--json',
      '--http-port',
      '0',
      '--mqtt-port',
      String(port),
    ])
    server.close()
    expect(code).toBe(1)
    const { findings } = JSON.parse(stdout) as { findings: { what: string; ok: boolean; text: string }[] }
    expect(findings.filter(({ ok }) => !ok).map(({ what, text }) => `${what}: ${text}`)).toEqual([
      `data folder: ${data} may be written by others; take that right away`,
      `HTTP token: ${join(data, 'http-token')} has mode 0644; it must be 0600`,
      expect.stringMatching(/^MQTT passwords: .*mqtt-passwords line 1 is not user:scrypt/),
      `password of bridgeIn[0]: ${join(data, 'pw')} does not exist`,
      expect.stringMatching(/^authorities of bridgeIn.0.: .*ca\.pem cannot be read: ENOENT/),
      `X-Key of uplinks[0]: ${join(data, 'key')} does not exist`,
      `token for this gateway of register[0]: ${join(data, 'own')} does not exist`,
      `password of indexing.brokers[0]: ${join(data, 'idm')} does not exist`,
      expect.stringMatching(/^authorities of indexing.brokers.0.: .*b\.pem cannot be read: ENOENT/),
      `token of search: ${join(data, 'search')} does not exist`,
      `MQTT port: 127.0.0.1:${port} cannot be listened at: EADDRINUSE`,
    ])
  })

  it('tells that a component whose port is taken is reached otherwise, and is content', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const env = { SELVEDGE_SEARCH_PORT: String(port), SELVEDGE_RANKING_PORT: 'off' }
    const { code, stdout } = await selvedge(['check', ...freePorts], undefined, env)
    server.close()
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /port of search +ok, .* EADDRINUSE; it is reached under \/search\/ of the HTTP port only/,
    )
    expect(stdout).not.toContain('port of ranking')
  })

  it('names what is not a data folder', async () => {
    writeFileSync(data, 'a file')
    expect((await selvedge(['check', ...freePorts])).stdout).toContain(`NOT OK, ${data} is no folder`)
    const { stdout } = await selvedge(['check', ...freePorts], undefined, {
      SELVEDGE_DATA: join(data, 'deeper'),
    })
    expect(stdout).toContain(`cannot be made: ${data} is no folder`)
  })

  it('reports a database that is none', async () => {
    mkdirSync(data, { mode: 0o700 })
    writeFileSync(join(data, 'selvedge.db'), 'not a database, but long enough to look like one'.repeat(100))
    const { code, stdout } = await selvedge(['check', ...freePorts])
    expect(code).toBe(1)
    expect(stdout).toMatch(/selvedge\.db +NOT OK, .*no readable database/)
  })
})

describe('selvedge check and status with a gateway', () => {
  let gateway: GatewayProcess
  beforeAll(async () => {
    gateway = await startGatewayProcess()
    const entity = JSON.stringify({
      id: 'urn:ngsi-ld:Room:1',
      type: 'Room',
      temperature: { type: 'Property', value: 21 },
    })
    const url = `${gateway.httpUrl}/ngsi-ld/v1/entities`
    const { status } = await fetch(url, {
      method: 'POST',
      body: entity,
      headers: { 'content-type': 'application/json' },
    })
    expect(status).toBe(201)
  })
  afterAll(() => gateway.stop())

  it('knows that the ports are held by the gateway itself', async () => {
    const flags = ['--data', gateway.dataFolder, '--http-port', String(gateway.httpPort), '--mqtt-port', '0']
    const { code, stdout } = await selvedge(['check', ...flags])
    expect(stdout).toContain('in use by a running gateway')
    expect(stdout).toContain('is held, probably by the running gateway')
    expect(code).toBe(0)
  })

  it('asks a running gateway', async () => {
    const flags = ['--data', gateway.dataFolder, '--http-port', String(gateway.httpPort)]
    const asked = await selvedge(['status', ...flags])
    expect(asked.code).toBe(0)
    expect(asked.stdout).toContain(`Selvedge ${version} at ${gateway.httpUrl}: ready`)
    expect(asked.stdout).toMatch(/Entities +1\n/)
    expect(asked.stdout).toMatch(/Plugin +search, (?:starting|running)\n/)
    const inJson: unknown = JSON.parse((await selvedge(['status', '--json', ...flags])).stdout)
    expect(inJson).toMatchObject({ running: true, ready: true, version, metrics: { entities: 1 } })
  })

  it('says so when the gateway does not answer where it is asked', async () => {
    const { code, stdout } = await selvedge(['status', '--data', gateway.dataFolder, '--http-port', '1'])
    expect(code).toBe(1)
    expect(stdout).toContain('uses the data folder, but does not answer')
    expect(stdout).toMatch(/Entities +1\n/)
  })
})

describe('selvedge status without a gateway', () => {
  it('reads the data folder and leaves it as it is', async () => {
    const gateway = await startGatewayProcess({ dataFolder: data })
    await gateway.kill('SIGTERM')
    const files = () => readdirSync(data).map((name) => [name, statSync(join(data, name)).size])
    const before = files()
    const { code, stdout } = await selvedge(['status', '--http-port', '1'])
    expect(code).toBe(1)
    expect(stdout).toContain('Selvedge does not run. In ')
    expect(stdout).toMatch(/Entities +0\n/)
    expect(files()).toEqual(before)
    const inJson: unknown = JSON.parse((await selvedge(['status', '--json', '--http-port', '1'])).stdout)
    expect(inJson).toMatchObject({
      running: false,
      folder: { inUse: false, tenants: [{ name: '', counts: { entities: 0 } }] },
    })
  })

  it('says that it cannot read the data folder', async () => {
    writeFileSync(data, 'a file')
    const { code, stderr } = await selvedge(['status', '--http-port', '1'])
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${data} cannot be read: ENOTDIR`)])
    expect(stderr).not.toContain('    at ')
  })

  it('says that there is nothing yet', async () => {
    const { code, stdout } = await selvedge(['status', '--http-port', '1'])
    expect([code, stdout]).toEqual([1, `Selvedge does not run, and ${data} does not exist yet.\n`])
  })
})

describe('selvedge decode', () => {
  const pack =
    '[{"bn":"urn:dev:mac:0024befffe804ff1:","bt":1700000000,"n":"temp","u":"Cel","v":21.5},{"n":"hum","u":"%RH","v":40}]'

  it('shows readings and the entities they would become', async () => {
    const { code, stdout } = await selvedge(['decode', '--topic', 'senml/x', '--payload', pack])
    expect(code).toBe(0)
    expect(stdout).toContain('urn:dev:mac:0024befffe804ff1 temp  21.5 CEL 2023-11-14T22:13:20.000Z')
    for (const kind of ['Platform', 'Sensor', 'IotStream', 'ObservableProperty', 'StreamObservation']) {
      expect(stdout).toMatch(new RegExp(`${kind} +urn:ngsi-ld:${kind}:urn:dev:mac:0024befffe804ff1`))
    }
  })

  it('takes the payload from standard input and from a file alike, in JSON', async () => {
    const fromInput = await selvedge(['decode', '--json', '--content-type', 'application/senml+json'], pack)
    writeFileSync(join(folder, 'payload'), pack)
    const fromFile = await selvedge([
      'decode',
      '--json',
      '--content-type',
      'application/senml+json',
      '--file',
      join(folder, 'payload'),
    ])
    expect(JSON.parse(fromInput.stdout)).toEqual(JSON.parse(fromFile.stdout))
    expect(JSON.parse(fromInput.stdout)).toMatchObject({
      bridge: 'senml',
      readings: [
        { field: 'temp', value: 21.5 },
        { field: 'hum', value: 40 },
      ],
      problems: [],
    })
  })

  it('uses the mappings and the metadata of the settings', async () => {
    const config = {
      bridges: { json: [{ topic: 'site/{device}/state', fields: [{ path: 't', unit: '°C' }] }] },
      provisioning: { devices: { d1: { name: 'Hall', fields: { t: { min: -10 } } } } },
    }
    writeFileSync(join(folder, 'selvedge.json'), JSON.stringify(config))
    const { code, stdout } = await selvedge([
      'decode',
      '--json',
      '--topic',
      'site/d1/state',
      '--payload',
      '{"t":3}',
    ])
    expect(code).toBe(0)
    const { readings, entities } = JSON.parse(stdout) as { readings: unknown; entities: unknown }
    expect(readings).toMatchObject([{ device: 'd1', field: 't', value: 3, unitCode: 'CEL' }])
    expect(JSON.stringify(entities)).toContain('Hall')
    expect(JSON.stringify(entities)).toContain('-10')
  })

  it.each([
    [['--topic', 'senml/x', '--payload', 'no json'], 1, 'Problems:'],
    [['--topic', 'nobody/claims', '--payload', '1'], 1, 'no bridge claims the topic'],
    [['--topic', 'senml/x', '--payload', pack.replace('1700000000', '900000000')], 1, 'the time 1998-07-09'],
    [
      ['--topic', 'senml/x', '--retained', '--payload', '[{"bn":"d:","n":"t","v":1}]'],
      1,
      'a retained frame without a time',
    ],
  ])('%j ends with %i', async (args, expected, words) => {
    const { code, stdout } = await selvedge(['decode', ...args])
    expect([code, stdout]).toEqual([expected, expect.stringContaining(words)])
  })

  it.each([
    [[], '--topic is needed'],
    [['--topic', 'a', '--payload', 'x', '--file', 'y'], 'either --payload or --file'],
    [['--topic', 'a', '--file', '/none'], '--file: ENOENT'],
  ])('%j is wrong usage', async (args, words) => {
    const { code, stderr } = await selvedge(['decode', ...args])
    expect([code, stderr]).toEqual([64, expect.stringContaining(words)])
  })
})
