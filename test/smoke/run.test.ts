/** `selvedge run` as a process: start, output, stop, and errors that prevent a start. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { version } from '#base/register/version.ts'
import { calmTime } from '#test/kit/calm-time.ts'
import {
  type GatewayOptions,
  type GatewayProcess,
  runSelvedge,
  startGatewayProcess,
} from '#test/kit/process.ts'

let folder: string
const started: GatewayProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-run-'))
})

afterEach(async () => {
  for (const gateway of started.splice(0)) await gateway.kill()
  rmSync(folder, { recursive: true })
})

async function start(options: GatewayOptions = {}): Promise<GatewayProcess> {
  const gateway = await startGatewayProcess({ dataFolder: join(folder, 'data'), ...options })
  started.push(gateway)
  return gateway
}

const run = (env: Record<string, string>, ...flags: string[]) =>
  runSelvedge(['run', ...flags], {
    env: { SELVEDGE_DATA: join(folder, 'data'), SELVEDGE_HTTP_PORT: '0', SELVEDGE_MQTT_PORT: '0', ...env },
    cwd: folder,
  })

describe('selvedge run', () => {
  it('is ready when it reports so, is empty, and stops in order', async () => {
    const gateway = await start()
    expect(await gateway.event('gateway.ready')).toMatchObject({
      level: 'info',
      version,
      httpPort: gateway.httpPort,
    })
    expect((await fetch(`${gateway.httpUrl}/health/ready`)).status).toBe(200)
    const entities = await fetch(
      `${gateway.httpUrl}/ngsi-ld/v1/entities?type=http://www.w3.org/ns/sosa/Sensor`,
    )
    expect([entities.status, await entities.json()]).toEqual([200, []])
    const passed = calmTime()
    expect(await gateway.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    expect(passed()).toBeLessThan(10_000)
    // Work in progress at the signal is finished, and logged, between the two events.
    const lines = gateway.logLines()
    expect(lines.filter(({ event }) => String(event).startsWith('gateway.')).slice(-2)).toMatchObject([
      { event: 'gateway.stopping', signal: 'SIGTERM' },
      { event: 'gateway.stopped' },
    ])
    expect(lines.at(-1)).toMatchObject({ event: 'gateway.stopped' })
  })

  it('also runs from the sources without a bundle', async () => {
    const main = join(import.meta.dirname, '../../runtime/main.ts')
    const gateway = await start({ program: [process.execPath, main] })
    expect((await fetch(`${gateway.httpUrl}/health/ready`)).status).toBe(200)
    expect(await gateway.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  })

  it('also stops on SIGINT, and starts again after SIGKILL', async () => {
    const first = await start()
    expect(await first.kill()).toEqual({ code: null, signal: 'SIGKILL' })
    const second = await start()
    expect(await second.kill('SIGINT')).toEqual({ code: 0, signal: null })
  })

  it('writes only log lines to standard output', async () => {
    const gateway = await start({ config: { log: { level: 'debug' } } })
    await gateway.kill('SIGTERM')
    const lines = gateway.output().trim().split('\n')
    expect(lines.length).toBeGreaterThan(3)
    for (const line of lines)
      expect(Object.keys(JSON.parse(line) as object).slice(0, 3)).toEqual(['at', 'level', 'event'])
  })

  it('logs every setting of a component that is not built', async () => {
    const gateway = await start({
      env: { CUT_TYPE_URIS: 'x', SELVEDGE_IDENTITY_PORT: '0' },
      config: { identity: { port: 3001 } },
    })
    const absent = gateway.logLines().filter(({ event }) => event === 'config.absent-part')
    const settings = new Set(absent.map(({ setting }) => setting))
    expect(settings).toEqual(new Set(['CUT_TYPE_URIS', 'SELVEDGE_IDENTITY_PORT', 'identity']))
  })

  it('reports all mistakes and exits with 78', async () => {
    const { code, stdout, stderr } = await run(
      { SELVEDGE_HTTP_PORT: 'web', MONGO_HOST: 'x' },
      '--set',
      'comit.lingerMs=3',
    )
    expect([code, stdout]).toEqual([78, ''])
    expect(stderr.split('\n').slice(0, 1)).toEqual(['selvedge: 3 mistakes in the settings'])
    for (const name of ['http.port', 'MONGO_HOST', 'comit.lingerMs']) expect(stderr).toContain(`  ${name}: `)
    expect(existsSync(join(folder, 'data'))).toBe(false)
  })

  it('rejects disabled certificate verification', async () => {
    const { code, stderr } = await run({ NODE_TLS_REJECT_UNAUTHORIZED: '0' })
    expect(code).toBe(78)
    expect(stderr).toContain('NODE_TLS_REJECT_UNAUTHORIZED')
  })

  it('does not start twice on one data folder', async () => {
    await start()
    const { code, stderr } = await run({})
    expect(code).toBe(1)
    expect(stderr).toContain('another gateway uses the data folder')
  })

  it.each([
    [
      'other users may write to it',
      () => chmodSync(join(folder, 'data'), 0o707),
      'is writable by other users',
    ],
    ['it is a file', () => replaceByFile(join(folder, 'data')), 'is not a folder'],
  ])('does not start on a data folder if %s', async (_, spoil, words) => {
    mkdirSync(join(folder, 'data'), { mode: 0o700 })
    spoil()
    const { code, stdout, stderr } = await run({})
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${join(folder, 'data')} ${words}`)])
    expect(stdout).not.toContain('gateway.ready')
  })

  it.each(['passwordFile', 'caFile'])('does not start without the %s of a broker', async (name) => {
    const broker = { url: 'mqtts://127.0.0.1:1', topics: ['a'], username: 'u', [name]: 'absent' }
    const { code, stderr } = await run({}, '--set', `bridgeIn=${JSON.stringify([broker])}`)
    expect(code).toBe(78)
    expect(stderr).toMatch(/^selvedge run: .*\/data\/absent /)
    expect(stderr).not.toContain('    at ')
  })

  it.each(['SELVEDGE_HTTP_PORT', 'SELVEDGE_MQTT_PORT'])(
    'reports that the port of %s is in use',
    async (name) => {
      const other = await listenAnywhere()
      const { port } = other.address() as { port: number }
      const { code, stdout, stderr } = await run({ [name]: String(port) })
      other.close()
      expect(code).toBe(1)
      expect(stderr).toMatch(new RegExp(`^selvedge run: .*127\\.0\\.0\\.1:${port}: .*EADDRINUSE`))
      expect(stdout + stderr).not.toMatch(/client-error|^ {4}at /m)
    },
  )

  it('stops at the second signal if closing hangs', async () => {
    const gateway = await start({ env: { SELVEDGE_FAILPOINTS: 'writer:before-commit=sleep(60000)' } })
    const body = JSON.stringify({ id: 'urn:x:1', type: 'T' })
    void fetch(`${gateway.httpUrl}/ngsi-ld/v1/entities`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    }).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 300))
    const exit = gateway.kill('SIGTERM')
    await gateway.event('gateway.stopping')
    await new Promise((resolve) => setTimeout(resolve, 700))
    const passed = calmTime()
    void gateway.kill('SIGTERM')
    expect(await exit).toEqual({ code: 143, signal: null })
    expect(passed()).toBeLessThan(2000)
  })
})

describe('a listener that is not loopback', () => {
  it('requires a token, which is shown once and never logged', async () => {
    const env = { SELVEDGE_HOST: '0.0.0.0' }
    const first = await start({ env })
    const file = join(folder, 'data/http-token')
    const token = readFileSync(file, 'utf8').trim()
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(first.output().split(token)).toHaveLength(2)
    expect(JSON.stringify(first.logLines())).not.toContain(token)
    await first.kill('SIGTERM')

    const second = await start({ env })
    expect(second.output()).not.toContain(token)
    const address = outsideAddress() ?? '127.0.0.1'
    const url = `http://${address}:${second.httpPort}/ngsi-ld/v1/types`
    const statusWith = async (headers: Record<string, string>) => (await fetch(url, { headers })).status
    expect(await statusWith({})).toBe(401)
    expect(await statusWith({ authorization: 'Bearer wrong' })).toBe(401)
    expect(await statusWith({ authorization: `Bearer ${token}` })).not.toBe(401)
  })
})

function replaceByFile(name: string): void {
  rmdirSync(name)
  writeFileSync(name, '')
}

function listenAnywhere(): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => resolve(server))
  })
}

function outsideAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flat()
  return all.find((one) => one?.family === 'IPv4' && !one.internal)?.address
}
