/** check, status and decode as processes: their output as text and JSON, and their exit codes. */
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
  it('succeeds without settings and data', async () => {
    const { code, stdout, stderr } = await selvedge(['check', ...freePorts])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/settings +ok, from defaults and environment/)
    expect(stdout).toContain(`${data} will be created`)
    expect(readdirSync(folder)).toEqual([])
  })

  it('reports all mistakes in JSON', async () => {
    writeFileSync(join(folder, 'selvedge.yaml'), 'http: {prot: 1, port: x}\n')
    const { code, stdout } = await selvedge(['check', '--json'])
    expect(code).toBe(78)
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      mistakes: [
        { path: 'http.port', value: '"x"', expected: expect.stringContaining('a port') as string },
        { path: 'http.prot', value: '1', nearest: 'http.port', source: join(folder, 'selvedge.yaml') },
      ],
    })
  })

  it('reports all obstacles at once', async () => {
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
      `data folder: ${data} is writable by other users; remove that permission`,
      `HTTP token: ${join(data, 'http-token')} has mode 0644; it must be 0600`,
      expect.stringMatching(/^MQTT passwords: .*mqtt-passwords line 1 is not of the form user:scrypt/),
      `password of bridgeIn[0]: ${join(data, 'pw')} does not exist`,
      expect.stringMatching(/^authorities of bridgeIn.0.: .*ca\.pem cannot be read: ENOENT/),
      `X-Key of uplinks[0]: ${join(data, 'key')} does not exist`,
      `token for this gateway of register[0]: ${join(data, 'own')} does not exist`,
      `password of indexing.brokers[0]: ${join(data, 'idm')} does not exist`,
      expect.stringMatching(/^authorities of indexing.brokers.0.: .*b\.pem cannot be read: ENOENT/),
      `token of search: ${join(data, 'search')} does not exist`,
      `MQTT port: 127.0.0.1:${port} cannot be bound: EADDRINUSE`,
    ])
  })

  it('accepts a plugin port in use, and reports where the plugin is available instead', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const env = {
      SELVEDGE_SEARCH_PORT: String(port),
      SELVEDGE_RANKING_PORT: 'off',
      SELVEDGE_ORCHESTRATOR_PORT: 'off',
    }
    const { code, stdout } = await selvedge(['check', ...freePorts], undefined, env)
    server.close()
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /port of search +ok, .* EADDRINUSE; the plugin is available only under \/search\/ of the HTTP port/,
    )
    expect(stdout).not.toContain('port of ranking')
  })

  it('reports a path that is not a folder', async () => {
    writeFileSync(data, 'a file')
    expect((await selvedge(['check', ...freePorts])).stdout).toContain(`NOT OK, ${data} is not a folder`)
    const { stdout } = await selvedge(['check', ...freePorts], undefined, {
      SELVEDGE_DATA: join(data, 'deeper'),
    })
    expect(stdout).toContain(`cannot be created: ${data} is not a folder`)
  })

  it('reports a file that is not a database', async () => {
    mkdirSync(data, { mode: 0o700 })
    writeFileSync(join(data, 'selvedge.db'), 'not a database, but long enough to look like one'.repeat(100))
    const { code, stdout } = await selvedge(['check', ...freePorts])
    expect(code).toBe(1)
    expect(stdout).toMatch(/selvedge\.db +NOT OK, .*not a readable database/)
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

  it('recognizes ports in use by the gateway itself', async () => {
    const flags = ['--data', gateway.dataFolder, '--http-port', String(gateway.httpPort), '--mqtt-port', '0']
    const { code, stdout } = await selvedge(['check', ...flags])
    expect(stdout).toContain('in use by a running gateway')
    expect(stdout).toContain('is in use, probably by the running gateway')
    expect(code).toBe(0)
  })

  it('shows the state of a running gateway', async () => {
    const flags = ['--data', gateway.dataFolder, '--http-port', String(gateway.httpPort)]
    const shown = await selvedge(['status', ...flags])
    expect(shown.code).toBe(0)
    expect(shown.stdout).toContain(`Selvedge ${version} at ${gateway.httpUrl}: ready`)
    expect(shown.stdout).toMatch(/Entities +1\n/)
    expect(shown.stdout).toMatch(/Plugin +search, (?:starting|running)\n/)
    const inJson: unknown = JSON.parse((await selvedge(['status', '--json', ...flags])).stdout)
    expect(inJson).toMatchObject({ running: true, ready: true, version, metrics: { entities: 1 } })
  })

  it('reports a gateway that does not respond over HTTP', async () => {
    const { code, stdout } = await selvedge(['status', '--data', gateway.dataFolder, '--http-port', '1'])
    expect(code).toBe(1)
    expect(stdout).toContain('uses the data folder, but does not respond')
    expect(stdout).toMatch(/Entities +1\n/)
  })
})

describe('selvedge status without a gateway', () => {
  it('reads the data folder without changing it', async () => {
    const gateway = await startGatewayProcess({ dataFolder: data })
    await gateway.kill('SIGTERM')
    const files = () => readdirSync(data).map((name) => [name, statSync(join(data, name)).size])
    const before = files()
    const { code, stdout } = await selvedge(['status', '--http-port', '1'])
    expect(code).toBe(1)
    expect(stdout).toContain('Selvedge is not running. In ')
    expect(stdout).toMatch(/Entities +0\n/)
    expect(files()).toEqual(before)
    const inJson: unknown = JSON.parse((await selvedge(['status', '--json', '--http-port', '1'])).stdout)
    expect(inJson).toMatchObject({
      running: false,
      folder: { inUse: false, tenants: [{ name: '', counts: { entities: 0 } }] },
    })
  })

  it('reports an unreadable data folder', async () => {
    writeFileSync(data, 'a file')
    const { code, stderr } = await selvedge(['status', '--http-port', '1'])
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${data} cannot be read: ENOTDIR`)])
    expect(stderr).not.toContain('    at ')
  })

  it('reports a missing data folder', async () => {
    const { code, stdout } = await selvedge(['status', '--http-port', '1'])
    expect([code, stdout]).toEqual([1, `Selvedge is not running, and ${data} does not exist yet.\n`])
  })
})

describe('selvedge decode', () => {
  const pack =
    '[{"bn":"urn:dev:mac:0024befffe804ff1:","bt":1700000000,"n":"temp","u":"Cel","v":21.5},{"n":"hum","u":"%RH","v":40}]'

  it('shows readings and the entities that would be created', async () => {
    const { code, stdout } = await selvedge(['decode', '--topic', 'senml/x', '--payload', pack])
    expect(code).toBe(0)
    expect(stdout).toContain('urn:dev:mac:0024befffe804ff1 temp  21.5 CEL 2023-11-14T22:13:20.000Z')
    for (const kind of ['Platform', 'Sensor', 'IotStream', 'ObservableProperty', 'StreamObservation']) {
      expect(stdout).toMatch(new RegExp(`${kind} +urn:ngsi-ld:${kind}:urn:dev:mac:0024befffe804ff1`))
    }
  })

  it('reads the payload from standard input or a file, and prints JSON', async () => {
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
    [['--topic', 'nobody/claims', '--payload', '1'], 1, 'no bridge reads the topic'],
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
    [[], '--topic or --content-type is required'],
    [['--topic', 'a', '--payload', 'x', '--file', 'y'], '--payload and --file exclude each other'],
    [['--topic', 'a', '--file', '/none'], '--file: ENOENT'],
  ])('%j is wrong usage', async (args, words) => {
    const { code, stderr } = await selvedge(['decode', ...args])
    expect([code, stderr]).toEqual([64, expect.stringContaining(words)])
  })
})
