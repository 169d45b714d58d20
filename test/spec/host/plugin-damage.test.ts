/**
 * A plugin's file found damaged at run time is set aside when the plugin is disabled, so that the next
 * start derives its content again. An intact file is kept, whatever else is damaged.
 */
import { closeSync, existsSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, it, vi } from 'vitest'
import { definePlugin, type Host } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { setLimit } from '#test/kit/ceilings.ts'
import { pluginsOfFile } from '#test/kit/plugins-of-file.ts'

const site = pluginsOfFile()
beforeEach(() => {
  setLimit('pluginAttemptsMax', 1)
})

const pageBytes = 4096
const patience = 10_000
const file = (): string => join(site.folder, 'plugins', 'noter.db')
const create = (id: string): Promise<void> => site.open.broker.create({ id, type: 'T' } as Entity, 'http')

/** Records the ids of all entities from the beginning of the log. */
const noting = (fails: () => void) =>
  definePlugin({
    name: 'noter',
    version: '1.0.0',
    summary: 'Notes ids',
    needs: ['changes', 'database'],
    tables: ['CREATE TABLE note (id TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT'],
    start({ changes, database }: Host<object, 'changes' | 'database'>) {
      const put = database.prepare('INSERT OR REPLACE INTO note VALUES (?, ?)')
      const last = database.prepare('SELECT coalesce(max(n), 0) AS n FROM note')
      const { n } = last.get() as { n: number }
      changes.follow(n, {
        take({ changed, through }) {
          fails()
          database.transaction(() => {
            for (const { id } of changed) put.run(id, through)
          })()
        },
        readAnew: async () => 0,
      })
      const count = database.prepare('SELECT count(*) AS c FROM note')
      return { fetch: () => Response.json(count.get()), status: () => ({ notes: count.get() }) }
    },
  })
const start = async (fails = (): void => undefined): Promise<void> => {
  await site.start([noting(fails)])
}
const noted = async (): Promise<unknown> => {
  const answer = await site.ask('noter')
  return answer.json()
}
const isQuarantined = (): void => expect(site.host.status()).toMatchObject({ noter: { state: 'failed' } })

/** Damages the file when it is large, and lets the plugin find the damage. */
async function damageFound(): Promise<void> {
  for (let i = 0; i < 400; i++) await create(`urn:x:${i}`)
  await start()
  await vi.waitFor(async () => expect(await noted()).toEqual({ c: 400 }), patience)
  await site.host.close()
  // Not the first pages: they are checked when the file is opened.
  const bytes = statSync(file()).size
  expect(bytes).toBeGreaterThan(6 * pageBytes)
  const descriptor = openSync(file(), 'r+')
  writeSync(descriptor, Buffer.alloc(bytes - 4 * pageBytes, 0xff), 0, bytes - 4 * pageBytes, 4 * pageBytes)
  closeSync(descriptor)
  await start()
  for (let i = 0; i < 20; i++) await create(`urn:y:${i}`)
  await vi.waitFor(isQuarantined, patience)
}

it('is set aside when the damage is found, and created again by the next start', async () => {
  await damageFound()
  await vi.waitFor(() => expect(existsSync(`${file()}.damaged`)).toBe(true), patience)
  await site.host.close()
  await start()
  await vi.waitFor(async () => expect(await noted()).toEqual({ c: 420 }), patience)
})

it('is kept if it cannot be set aside, without further effect', async () => {
  mkdirSync(join(`${file()}.damaged`, 'in the way'), { recursive: true })
  await damageFound()
  const failed = { event: 'plugin.failed', plugin: 'noter', during: 'setting its file aside' }
  await vi.waitFor(() => expect(site.open.logged).toContainEqual(expect.objectContaining(failed)), patience)
  expect(statSync(file()).isFile()).toBe(true)
})

it('is kept if something else is damaged', async () => {
  await create('urn:x:1')
  await start(() => {
    throw Object.assign(new Error('database disk image is malformed'), { code: 'SQLITE_CORRUPT' })
  })
  await vi.waitFor(isQuarantined, patience)
  await site.host.close()
  expect(existsSync(`${file()}.damaged`)).toBe(false)
  expect(existsSync(file())).toBe(true)
})
