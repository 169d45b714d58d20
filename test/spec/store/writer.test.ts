/** The writer thread: groups are written as a whole or not at all, unusable files, its WAL, and its death. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { isGatewayError } from '#base/register/errors.ts'
import { walFrameBytes } from '#store/file/copy-back.ts'
import { migrate, openReader } from '#store/file/database.ts'
import { createRecords } from '#store/tables/records.ts'
import type { WriteRow } from '#store/writer/write-statements.ts'
import { createWriter, type Writer } from '#store/writer/writer.ts'

let folder: string
let file: string
let writer: Writer
const deaths: unknown[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-'))
  file = join(folder, 'tenant.db')
  migrate(file)
  deaths.length = 0
  writer = createWriter((error) => deaths.push(error))
})
afterEach(async () => {
  await writer.end()
  rmSync(folder, { recursive: true, force: true })
})

const walBytesMax = limits.walPagesMax.value * walFrameBytes
const nothingElse = { blobs: [], streamFolds: [], entityFolds: [] }
const write = (rows: readonly WriteRow[], tenant = 'a'): Promise<string> =>
  new Promise((resolve) => {
    writer.write({ tenant, walBytesMax, keptBytes: 0, rows, ...nothingElse }, (error) =>
      resolve(error?.code ?? 'written'),
    )
  })

it('reports a group as written when another connection can read it', async () => {
  await writer.open('a', file, 'FULL')
  const reader = openReader(file)
  expect(await write([['meta.put', 'k', 1]])).toBe('written')
  expect(createRecords(reader).meta('k')).toBe(1)
  reader.close()
})

it('leaves no trace of a group with a row that cannot be written', async () => {
  await writer.open('a', file, 'NORMAL')
  const reader = openReader(file)
  expect(
    await write([
      ['meta.put', 'k', 1],
      ['subscription.insert', 1, null, null, null],
    ]),
  ).toBe('store.failed')
  expect(createRecords(reader).meta('k')).toBeUndefined()
  expect(await write([['meta.put', 'k', 2]])).toBe('written')
  expect(createRecords(reader).meta('k')).toBe(2)
  reader.close()
})

it('refuses a file that cannot be opened, and continues', async () => {
  await writer.open('a', file, 'NORMAL')
  const code = await writer.open('b', join(folder, 'nowhere', 'b.db'), 'NORMAL').catch((error: unknown) => {
    return isGatewayError(error) ? error.code : error
  })
  expect(code).toBe('store.failed')
  expect(await write([['meta.put', 'k', 1]])).toBe('written')
  expect(deaths).toEqual([])
})

it('refuses a row that cannot be cloned, and continues', async () => {
  await writer.open('a', file, 'NORMAL')
  await expect(write([['meta.put', 'k', (() => 1) as never]])).rejects.toThrow('could not be cloned')
  expect(await write([['meta.put', 'k', 1]])).toBe('written')
})

it('keeps the WAL small under changing readers', async () => {
  await writer.open('a', file, 'NORMAL')
  const reader = openReader(file)
  const text = 'x'.repeat(1024 * 1024)
  let most = 0
  for (let i = 0; i < 40; i++) {
    await write([['context.put', `http://x/${i % 4}`, 'user', i, null, `${i}${text}`]])
    createRecords(reader).context('http://x/0')
    most = Math.max(most, statSync(`${file}-wal`).size)
    // The WAL size is checked ten times a second.
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const pageBytes = 4096
  expect(most).toBeLessThan(3 * limits.walPagesMax.value * pageBytes)
  reader.close()
  await writer.close('a')
  expect(() => statSync(`${file}-wal`)).toThrow('ENOENT')
})

it('reports its death', async () => {
  writer.write({ tenant: 'nobody', walBytesMax, keptBytes: 0, rows: [], ...nothingElse }, () => undefined)
  await expect.poll(() => deaths.length).toBeGreaterThan(0)
  expect(String(deaths[0])).toContain('an open tenant')
})
