/** Models over HTTP and by the command line: list, upload, measure, remove; archives that must be refused. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandLine } from '#cli/command-line.ts'
import { modelFiles } from '#inference/folders/folder-scan.ts'
import { readTar, writeTar } from '#inference/folders/tar-archive.ts'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'
import { type LinearFolder, writeModel } from '#test/kit/onnx-models.ts'

const path = '/selvedge/v1/models'
const headers = { 'content-type': 'application/x-tar' }
let gateway: HttpGateway
let scratch: string
beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'selvedge-models-'))
  gateway = await startHttpGateway()
})
afterAll(async () => {
  await gateway.close()
  rmSync(scratch, { recursive: true, force: true })
})

let count = 0
const folderOf = (options: LinearFolder = {}): string => writeModel(join(scratch, String(count++)), options)
const filesOf = (folder: string): Map<string, Uint8Array> =>
  new Map(modelFiles.map((name) => [name, readFileSync(join(folder, name))]))
const post = (body: Uint8Array) => gateway.ask('POST', path, { body, headers })
const stored = (): string[] => {
  const folder = join(gateway.dataFolder, 'models')
  return existsSync(folder) ? readdirSync(folder) : []
}

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const text = { out: '', err: '' }
  const terminal = {
    out(part: string) {
      text.out += part
    },
    err(part: string) {
      text.err += part
    },
    env: { SELVEDGE_DATA: gateway.dataFolder },
    input: process.stdin,
    columns: undefined,
  }
  return { code: await commandLine(['models', ...args], terminal), ...text }
}

describe('models over HTTP', () => {
  it('are uploaded as a tar of their folder, listed, measured and removed', async () => {
    expect((await gateway.get(path)).json()).toMatchObject({ process: { running: false }, models: [] })
    const archive = execFileSync('tar', ['-cf', '-', '-C', join(folderOf(), '..'), 'linear'])
    const added = await post(archive)
    expect([added.status, added.json()]).toEqual([
      201,
      { name: 'linear', version: '1', kind: 'virtual-sensor' },
    ])
    expect(added.headers['location']).toBe(`${path}/linear`)
    expect((await gateway.get(path)).json()).toMatchObject({
      process: { running: false },
      models: [{ name: 'linear', source: 'uploaded', state: 'unchecked', licence: 'CC0-1.0' }],
    })
    const measured = await gateway.ask('POST', `${path}/linear/measure`)
    expect(measured.json()).toMatchObject({ p50: expect.any(Number), batchedRow: expect.any(Number) })
    expect((await gateway.get(path)).json()).toMatchObject({
      process: { running: true },
      models: [{ state: 'loaded' }],
    })
    expect((await gateway.ask('DELETE', `${path}/linear`)).status).toBe(204)
    expect((await gateway.ask('DELETE', `${path}/linear`)).status).toBe(404)
    expect((await gateway.get(path)).json()).toMatchObject({ process: { running: false }, models: [] })
    expect(stored()).toEqual([])
  })

  it('replace a model of the same name, and keep it if the new one is wrong', async () => {
    expect((await post(writeTar(filesOf(folderOf())))).status).toBe(201)
    expect((await post(writeTar(filesOf(folderOf({ document: { version: '2' } }))))).status).toBe(201)
    const wrong = await post(
      writeTar(filesOf(folderOf({ document: { version: '3', sha256: '0'.repeat(64) } }))),
    )
    expect([wrong.status, wrong.json()]).toMatchObject([
      400,
      { detail: expect.stringMatching(/^model\.onnx: its SHA-256 is/) },
    ])
    expect((await gateway.get(path)).json()).toMatchObject({ models: [{ version: '2' }] })
    expect(stored()).toEqual(['linear'])
    expect((await gateway.ask('DELETE', `${path}/linear`)).status).toBe(204)
  })

  const files = (): Map<string, Uint8Array> => filesOf(folderOf())
  const renamed = (name: string): Uint8Array => {
    const all = files()
    const card = all.get('card.md')!
    all.delete('card.md')
    return writeTar(new Map([...all, [name, card]]))
  }
  /** The archive with another kind in the header of its first file. */
  const ofKind = (kind: string): Uint8Array => {
    const archive = Buffer.from(writeTar(files()))
    const before = archive[156]!
    archive.write(kind, 156)
    const sum = Number.parseInt(archive.toString('latin1', 148, 154), 8) + kind.charCodeAt(0) - before
    archive.write(sum.toString(8).padStart(6, '0'), 148)
    return archive
  }

  it.each<[string, () => Uint8Array, RegExp]>([
    ['a path outside', () => renamed('../card.md'), /\.\.\/card\.md is not expected/],
    ['an absolute path', () => renamed('/card.md'), /\/card\.md is not expected/],
    ['a path in two folders', () => renamed('a/b/card.md'), /a\/b\/card\.md is not expected/],
    ['files of two folders', () => renamed('other/card.md'), /expected the files of one folder/],
    [
      'another file',
      () => writeTar(new Map([...files(), ['run.sh', Buffer.from('x')]])),
      /run\.sh is not expected/,
    ],
    ['a symbolic link', () => ofKind('2'), /is not a regular file/],
    ['a hard link', () => ofKind('1'), /is not a regular file/],
    ['a missing file', () => writeTar(new Map([...files()].slice(1))), /model\.json is missing/],
    [
      'a damaged header',
      () => Buffer.from(writeTar(files())).fill(0x41, 0, 8),
      /it is damaged, or no tar archive/,
    ],
    ['an end within a file', () => writeTar(files()).subarray(0, 600), /it ends within a file/],
    [
      'an unknown key',
      () => writeTar(filesOf(folderOf({ document: { extra: 1 } }))),
      /extra: 1: expected one of/,
    ],
  ])('are refused for %s', async (_what, archive, reason) => {
    const answer = await post(archive())
    expect([answer.status, answer.json()]).toMatchObject([400, { detail: expect.stringMatching(reason) }])
    expect(stored()).toEqual([])
    expect(readdirSync(gateway.dataFolder)).not.toContain('card.md')
  })

  it('are refused beyond the size limit, and as another media type', async () => {
    expect((await post(Buffer.alloc(7 * 1024 * 1024 + 1))).status).toBe(413)
    const zip = { body: Buffer.alloc(10), headers: { 'content-type': 'application/zip' } }
    expect((await gateway.ask('POST', path, zip)).status).toBe(415)
  })
})

describe('a tar archive', () => {
  it('written here is read by tar, and the other way round', () => {
    const files = filesOf(folderOf())
    const listed = execFileSync('tar', ['-tf', '-'], { input: writeTar(files), encoding: 'utf8' })
    expect(listed.trim().split('\n').toSorted()).toEqual([...modelFiles].toSorted())
    const made = execFileSync('tar', ['-cf', '-', '-C', folderOf(), '.'])
    expect([...readTar(made, modelFiles).keys()].toSorted()).toEqual([...modelFiles].toSorted())
  })
})

describe('selvedge models', () => {
  it('adds, lists, measures and removes a model of a gateway, and checks a folder without one', async () => {
    const folder = folderOf({ document: { assign: { property: 'temperature' } } })
    const url = ['--url', gateway.url]
    expect(await run('ls', ...url)).toMatchObject({ code: 0, out: 'There are no models.\n' })
    expect(await run('add', folder, ...url)).toMatchObject({ code: 0, out: 'linear 1 added\n' })
    expect((await run('ls', ...url)).out).toMatch(
      /linear +1, virtual-sensor, uploaded, unchecked, for property temperature/,
    )
    expect((await run('bench', 'linear', ...url)).out).toMatch(
      /One row +p50 [\d.]+ us, p99 [\d.]+ us per call/,
    )
    expect(await run('rm', 'linear', ...url)).toMatchObject({ code: 0, out: 'linear removed\n' })
    expect(await run('rm', 'linear', ...url)).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no model'),
    })
    expect((await run('test', folder)).out).toMatch(
      /Checks +hash, operators, size, shapes and golden vectors are correct/,
    )
    const wrong = folderOf({ golden: { tolerance: 1e-5, vectors: [{ input: [0, 0, 0], output: [9] }] } })
    expect(await run('test', wrong)).toMatchObject({
      code: 1,
      err: expect.stringContaining('the model gives 0.5, expected 9'),
    })
    expect(await run('test')).toMatchObject({ code: 64 })
  })
})
