/**
 * Backups: everything that a gateway had acknowledged before a backup began is restored into an empty folder,
 * with the same ids. An interrupted backup does not count, and a damaged or newer one is not restored.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { listBackups, manifestName, pruneBackups } from '#store/backup/manifest.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, runSelvedge, startGatewayProcess, startSelvedge } from '#test/kit/process.ts'

const entities = '/ngsi-ld/v1/entities'
const context = { '@context': { warm: 'https://a.example/warm' } }
let folder: string
let data: string
let backups: string
const running: GatewayProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-backup-'))
  data = join(folder, 'data')
  backups = join(data, 'backups')
})
afterEach(async () => {
  for (const gateway of running.splice(0)) await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

const start = async (dataFolder = data, env: Record<string, string> = {}): Promise<GatewayProcess> => {
  const gateway = await startGatewayProcess({ dataFolder, env })
  running.push(gateway)
  return gateway
}
const selvedge = (args: string[], dataFolder = data) =>
  runSelvedge(args, { env: { SELVEDGE_DATA: dataFolder }, cwd: tmpdir() })
const room = (n: number, value = n): object => ({
  id: `urn:ngsi-ld:Room:${n}`,
  type: 'Room',
  temperature: {
    type: 'Property',
    value,
    observedAt: new Date(1_767_225_600_000 + value * 1000).toISOString(),
  },
})

/** Rooms with some history, one of another tenant, a hosted context. */
async function furnish(client: HttpClient): Promise<void> {
  for (let n = 0; n < 3; n++) expect((await client.send('POST', entities, room(n))).status).toBe(201)
  for (let value = 10; value < 15; value++) {
    const { temperature } = room(0, value) as { temperature: object }
    const path = `${entities}/urn:ngsi-ld:Room:0/attrs/temperature`
    expect((await client.send('PATCH', path, temperature)).status).toBe(204)
  }
  const headers = { 'ngsild-tenant': 'barn' }
  expect((await client.send('POST', entities, room(7), headers)).status).toBe(201)
  expect((await client.send('POST', '/ngsi-ld/v1/jsonldContexts', context)).status).toBe(201)
}

/** Nothing, or lines of progress on a busy machine. */
const progress = /^(?:[\d,]+ of [\d,]+ bytes, [\d,]+ per second\n)*$/

const everything = async (client: HttpClient): Promise<unknown> => ({
  rooms: (await client.get(`${entities}?type=Room&options=sysAttrs`)).json(),
  barn: (await client.get(`${entities}?type=Room`, { 'ngsild-tenant': 'barn' })).json(),
  past: (await client.get('/ngsi-ld/v1/temporal/entities/urn:ngsi-ld:Room:0')).json(),
  contexts: ((await client.get('/ngsi-ld/v1/jsonldContexts?kind=Hosted')).json() as unknown[]).length,
  identity: ((await client.get('/ngsi-ld/v1/info/sourceIdentity')).json() as { contextSourceAlias: string })
    .contextSourceAlias,
})

describe('a backup of a running gateway', () => {
  it('restores everything from before it began, under the same ids', async () => {
    const gateway = await start()
    const client = httpClient(gateway.httpUrl)
    await furnish(client)
    const before = await everything(client)
    const { code, stdout } = await selvedge(['backup', '--url', gateway.httpUrl, '--json'])
    expect(code).toBe(0)
    const { path } = JSON.parse(stdout) as { path: string }
    expect(path.startsWith(backups)).toBe(true)
    expect((await client.send('POST', entities, room(99))).status).toBe(201)

    const again = join(folder, 'again')
    const restored = await selvedge(['restore', '--from', path], again)
    expect(restored).toMatchObject({ code: 0, stderr: expect.stringMatching(progress) as string })
    const second = await start(again)
    expect(await everything(httpClient(second.httpUrl))).toEqual(before)
    expect((await httpClient(second.httpUrl).get(`${entities}/urn:ngsi-ld:Room:99`)).status).toBe(404)
  })

  it('is reported by status, metrics and log', async () => {
    const gateway = await start()
    const client = httpClient(gateway.httpUrl)
    const age = async (): Promise<number> =>
      Number(/^selvedge_backup_age_seconds (\S+)$/m.exec((await client.get('/metrics')).text)![1])
    expect(await age()).toBeGreaterThan(1e9)
    expect((await client.send('POST', '/selvedge/v1/backups', undefined)).status).toBe(201)
    expect(await age()).toBeLessThan(60)
    expect(await gateway.event('backup.made')).toMatchObject({ verified: true })
    expect((await client.get('/selvedge/v1/backups')).json()).toMatchObject({
      folder: backups,
      backups: [{ verified: true, tenants: [{ name: '' }] }],
    })
  })

  it('is also made by the backup command, and older ones are deleted', async () => {
    const gateway = await start(data, { SELVEDGE_BACKUP_KEEP: '2' })
    const client = httpClient(gateway.httpUrl)
    await furnish(client)
    for (let i = 0; i < 3; i++) await client.send('POST', '/selvedge/v1/backups', undefined)
    expect(listBackups(backups)).toHaveLength(2)
    const listed = await selvedge(['backup', '--list', '--json'])
    expect(JSON.parse(listed.stdout)).toMatchObject({
      folder: backups,
      backups: listBackups(backups).map(({ name }) => ({ name, verified: true })),
    })
    const elsewhere = join(folder, 'elsewhere')
    expect((await selvedge(['backup', '--to', elsewhere])).code).toBe(0)
    const nowhere = await selvedge(['backup', '--to', '/proc/nowhere'])
    expect(nowhere.stderr).toContain('/proc/nowhere cannot be created')
    expect(nowhere.code).not.toBe(0)
    expect(listBackups(elsewhere)).toHaveLength(1)
    expect(listBackups(backups)).toHaveLength(2)
  })

  it.each([
    ['the newest verified one beside newer unverified ones', [-1, 2, 3], undefined, [3, 2, -1]],
    ['only the newest verified one of several', [-1, -2, 3, 4], undefined, [4, 3, -2]],
    ['the one just made, although the clock was set back', [-1, -8, -9], 1, [-9, -1]],
  ])('is deleted with age, but never %s', (_what, days, just, left) => {
    const nameOf = (day: number): string => `backup-2026010${day}T000000Z`
    for (const [day, verified] of days.map((n) => [Math.abs(n), n < 0] as const)) {
      const path = join(backups, nameOf(day))
      mkdirSync(path, { recursive: true })
      const manifest = { product: 'selvedge', manifest: 1, gatewayId: 'g', startedAt: day, verified }
      writeFileSync(join(path, manifestName), JSON.stringify({ ...manifest, tenants: [], files: [] }))
    }
    const deleted = pruneBackups(backups, 'g', {
      keep: 2,
      made: just === undefined ? undefined : nameOf(just),
    })
    expect(listBackups(backups).map(({ name }) => name)).toEqual(left.map((n) => nameOf(Math.abs(n))))
    expect(deleted).toBe(days.length - left.length)
    expect(pruneBackups(backups, 'another gateway', { keep: 1 })).toBe(0)
  })

  it('is verified when a target folder is given, and overwrites nothing there', async () => {
    await furnish(httpClient((await start()).httpUrl))
    const elsewhere = join(folder, 'usb')
    const env = { SELVEDGE_DATA: data, SELVEDGE_BACKUP_VERIFY: 'false' }
    const into = (to: string) => runSelvedge(['backup', '--to', to], { env, cwd: tmpdir() })
    for (let i = 0; i < 2; i++) expect((await into(elsewhere)).stdout).toContain('verified')
    const all = listBackups(elsewhere)
    expect(all.map(({ manifest }) => manifest.verified)).toEqual([true, true])
    expect(await into(all[0]!.path)).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('is itself a backup'),
    })
    const file = join(folder, 'file')
    writeFileSync(file, 'mine')
    expect(await into(file)).toMatchObject({ code: 64, stderr: expect.stringContaining('is a file') })
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect(listBackups(elsewhere)).toHaveLength(2)
  })
})

describe('a backup', () => {
  const furnished = mkdtempSync(join(tmpdir(), 'selvedge-backup-'))
  let path: string
  beforeAll(async () => {
    const gateway = await startGatewayProcess({ dataFolder: furnished })
    await furnish(httpClient(gateway.httpUrl))
    await gateway.stop()
    expect(await selvedge(['backup'], furnished)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(progress) as string,
    })
  })
  beforeEach(() => {
    cpSync(furnished, data, { recursive: true })
    path = listBackups(backups)[0]!.path
  })
  afterAll(() => rmSync(furnished, { recursive: true }))

  it.each(['backup:mid-copy', 'backup:between-files', 'backup:before-name'])(
    'that a kill cuts short at %s is none, and the next one takes it away',
    async (failpoint) => {
      const before = listBackups(backups)
      const cut = startSelvedge(['backup'], {
        env: { SELVEDGE_DATA: data, SELVEDGE_FAILPOINTS: `${failpoint}=kill` },
        cwd: tmpdir(),
      })
      expect((await cut.exited).signal).toBe('SIGKILL')
      expect(listBackups(backups)).toEqual(before)
      expect((await selvedge(['backup'])).code).toBe(0)
      expect(readdirSync(backups).filter((name) => name.startsWith('.'))).toEqual([])
      expect(listBackups(backups)).toHaveLength(2)
    },
  )

  it.each(['restore:between-files', 'restore:before-end'])(
    'whose restoring was killed at %s is restored by another try, and no gateway starts before',
    async (failpoint) => {
      const again = join(folder, 'again')
      const cut = startSelvedge(['restore', '--from', path], {
        env: { SELVEDGE_DATA: again, SELVEDGE_FAILPOINTS: `${failpoint}=kill` },
        cwd: tmpdir(),
      })
      expect((await cut.exited).signal).toBe('SIGKILL')
      const early = await selvedge(['run', '--http-port', '0', '--mqtt-port', 'off'], again)
      expect(early.code).toBe(1)
      expect(early.stderr).toContain('was interrupted: run selvedge restore again')
      expect((await selvedge(['restore', '--from', path], again)).code).toBe(0)
      const gateway = await start(again)
      const rooms = await httpClient(gateway.httpUrl).get(`${entities}?type=Room`)
      expect(rooms.json()).toHaveLength(3)
    },
  )

  it('that was damaged later is refused, and the folder stays empty', async () => {
    const file = join(path, 'tenants', 'barn.db')
    const bytes = readFileSync(file)
    bytes[5000]! ^= 1
    writeFileSync(file, bytes)
    const again = join(folder, 'again')
    const { code, stderr } = await selvedge(['restore', '--from', path], again)
    expect(code).toBe(1)
    expect(stderr).toContain('barn.db')
    expect(readdirSync(again)).toEqual(['lock', 'tenants'])
    expect(readdirSync(join(again, 'tenants'))).toEqual([])
  })

  it('of a newer format is refused by name', async () => {
    const manifest = join(path, 'manifest.json')
    const text = readFileSync(manifest, 'utf8').replaceAll(/"format": \d+/g, '"format": 9999')
    writeFileSync(manifest, text)
    const { code, stderr } = await selvedge(['restore', '--from', path], join(folder, 'again'))
    expect(code).toBe(1)
    expect(stderr).toContain('data format 9999')
    expect(existsSync(join(folder, 'again', 'selvedge.db'))).toBe(false)
  })

  it('is not restored into a folder that is not empty', async () => {
    const { code, stderr } = await selvedge(['restore', '--from', path])
    expect(code).toBe(1)
    expect(stderr).toContain('only be restored into an empty folder')
    expect(stderr).toContain('--data')
  })
})

describe('a folder that several gateways keep backups in', () => {
  const shared = (): string => join(folder, 'shared')
  const [one, other] = ['one', 'other'].map((name) => () => join(folder, name)) as [
    () => string,
    () => string,
  ]
  const idOf = ({ dataFolder }: GatewayProcess): string =>
    readFileSync(join(dataFolder, 'gateway-id'), 'utf8').trim()
  const open = (dataFolder: string, env: Record<string, string> = {}): Promise<GatewayProcess> =>
    start(dataFolder, { SELVEDGE_BACKUP_FOLDER: shared(), ...env })
  const make = async (gateway: GatewayProcess): Promise<string> => {
    const answer = await httpClient(gateway.httpUrl).send('POST', '/selvedge/v1/backups', undefined)
    expect(answer.status).toBe(201)
    return (answer.json() as { name: string }).name
  }
  const restoreFrom = (...args: string[]) =>
    selvedge(['restore', '--from', shared(), '--data', join(folder, 'new'), ...args])

  it('reports to each gateway the age of its own backup, and restores the one that is named', async () => {
    const first = await open(one())
    const second = await open(other(), { SELVEDGE_BACKUP_KEEP: '1' })
    const mine = await make(first)
    expect((await httpClient(second.httpUrl).get('/metrics')).text).toMatch(
      /^selvedge_backup_age_seconds 3\d{9}/m,
    )
    const unfinished = join(shared(), `.partial-${idOf(first)}-999999-backup-20260102T030405Z`)
    mkdirSync(unfinished)
    for (let i = 0; i < 2; i++) await make(second)
    expect(existsSync(unfinished)).toBe(true)
    expect(
      listBackups(shared())
        .map(({ manifest }) => manifest.gatewayId)
        .toSorted(),
    ).toEqual([idOf(first), idOf(second)].toSorted())
    // A new gateway in the same folder has no backup, whatever others made last.
    await first.stop()
    const again = await open(one())
    const told = /^selvedge_backup_age_seconds (\S+)$/m.exec(
      (await httpClient(again.httpUrl).get('/metrics')).text,
    )
    const { manifest } = listBackups(shared()).find(({ name }) => name === mine)!
    expect(Number(told![1])).toBeGreaterThanOrEqual(Math.floor((Date.now() - manifest.startedAt) / 1000) - 1)

    const unclear = await restoreFrom()
    expect(unclear.code).toBe(64)
    expect(unclear.stderr).toContain('several gateways')
    expect(unclear.stderr).toContain(idOf(again))
    const ours = await restoreFrom('--gateway', idOf(again))
    expect(ours).toMatchObject({ code: 0, stderr: expect.stringMatching(progress) as string })
    expect(readFileSync(join(folder, 'new', 'gateway-id'), 'utf8')).toContain(idOf(again))
  })

  it('restores an unverified backup only if there is no other, and reports that', async () => {
    const { stop } = await open(one(), { SELVEDGE_BACKUP_VERIFY: 'false' }).then(async (gateway) => {
      await make(gateway)
      return gateway
    })
    await stop()
    const alone = await restoreFrom()
    expect(alone.code).toBe(0)
    expect(alone.stderr).toMatch(/not verified .*no verified one/)
    rmSync(join(folder, 'new'), { recursive: true })
    const reading = await open(one())
    const good = await make(reading)
    await reading.stop()
    await make(await open(one(), { SELVEDGE_BACKUP_VERIFY: 'false' }))
    const chosen = await restoreFrom()
    expect(chosen).toMatchObject({ code: 0, stderr: expect.stringContaining(`using ${good}`) })
  })
})
