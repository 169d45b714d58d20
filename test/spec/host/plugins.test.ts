/**
 * The guarantees of the host to plugins and to the gateway: a plugin gets the capabilities it named, and its
 * derived data is exact in all cases. A failed plugin is disabled without effect on others.
 */

import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { GatewayError } from '#base/register/errors.ts'
import {
  type ChangeBatch,
  type ChangesPort,
  definePlugin,
  type Host,
  type PluginDatabase,
  type Running,
} from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { observe } from '#test/kit/broker.ts'
import { setLimit } from '#test/kit/ceilings.ts'
import { pluginsOfFile } from '#test/kit/plugins-of-file.ts'

const site = pluginsOfFile()

const create = (id: string, type = 'T', value = 1): Promise<void> =>
  site.open.broker.create({ id, type, a: { type: 'Property', value } } as Entity, 'http')

const tables = [
  'CREATE TABLE copy (id TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT; CREATE TABLE cursor (n INTEGER NOT NULL) STRICT; INSERT INTO cursor VALUES (0);',
]

interface Copier {
  readonly batches: ChangeBatch[]
  fails?: () => boolean
}

/** Copies all entities of type T into a table, with the cursor in the same transaction. */
const copying = (state: Copier) =>
  definePlugin({
    name: 'copier',
    version: '1.0.0',
    summary: 'Copies entities',
    needs: ['changes', 'database'],
    tables,
    start: ({ changes, database }: Host<object, 'changes' | 'database'>) => run(changes, database, state),
  })

function run(changes: ChangesPort, database: PluginDatabase, state: Copier): Running {
  const put = database.prepare('INSERT OR REPLACE INTO copy VALUES (?, ?)')
  const remove = database.prepare('DELETE FROM copy WHERE id = ?')
  const moveTo = database.prepare('UPDATE cursor SET n = ?')
  const take = database.transaction((batch: ChangeBatch) => {
    for (const one of batch.changed) put.run(one.id, one.text())
    if (state.fails?.() === true) throw new RangeError('not today')
    for (const id of batch.deleted) remove.run(id)
    moveTo.run(batch.through)
  })
  const anew = database.transaction(() => {
    const from = changes.position()
    database.prepare('DELETE FROM copy').run()
    for (
      let behind = 0, page = changes.entities(behind, 2);
      page.length > 0;
      page = changes.entities(behind, 2)
    ) {
      for (const one of page) if (one.types.includes('T')) put.run(one.id, one.text())
      behind = page.at(-1)!.rid
    }
    moveTo.run(from)
    return from
  })
  const { n } = database.prepare('SELECT n FROM cursor').get() as { n: number }
  changes.follow(n, {
    types: new Set(['T']),
    take(batch) {
      state.batches.push(batch)
      take(batch)
    },
    readAnew: () => anew(),
  })
  return {
    fetch: () => Response.json(database.prepare('SELECT id, doc FROM copy ORDER BY id').all()),
  }
}

async function copied(): Promise<unknown> {
  const answer = await site.ask('copier')
  return answer.json()
}

function scanned(): unknown {
  const { entities } = site.open.broker.queryAtOnce({
    selection: undefined,
    limit: 1000,
    offset: 0,
    count: false,
  })
  return entities
    .filter((view) => view.entity().type === 'T')
    .map((view) => ({ id: view.id, doc: view.text() }))
    .toSorted((a, b) => a.id.localeCompare(b.id))
}

const plugin = (name: string, fetch: () => Response) =>
  definePlugin({ name, version: '1.0.0', summary: name, needs: [], start: () => ({ fetch }) })

const settles = (): Promise<void> => vi.waitFor(async () => expect(await copied()).toEqual(scanned()))

describe('the changes for a plugin', () => {
  it('match the state of the broker, after creations, changes, deletions and a change of type', async () => {
    const state: Copier = { batches: [] }
    await create('urn:x:before')
    await site.start([copying(state)])
    for (let i = 0; i < 20; i++) await create(`urn:x:${i}`, i % 3 === 0 ? 'Other' : 'T', i)
    await site.open.broker.remove('urn:x:4', 'http')
    await site.open.broker.replace({ id: 'urn:x:5', type: 'Other' } as Entity, { by: 'http' })
    await site.open.broker.append('urn:x:7', { b: { type: 'Property', value: 'new' } } as never, {
      by: 'http',
      noOverwrite: false,
    })
    await settles()
    expect((scanned() as unknown[]).length).toBe(12)
    expect(state.batches.every(({ observed }) => observed.length === 0)).toBe(true)
  })

  it('name an entity once per batch, however often it changed', async () => {
    setLimit('pluginBatchMs', 60_000)
    const state: Copier = { batches: [] }
    await create('urn:x:1')
    for (let value = 0; value < 30; value++)
      await site.open.broker.append('urn:x:1', { a: { type: 'Property', value } } as never, {
        by: 'http',
        noOverwrite: false,
      })
    await site.start([copying(state)])
    await settles()
    expect(state.batches.flatMap(({ changed }) => changed.map(({ id }) => id))).toEqual(['urn:x:1'])
  })

  it('continue after a restart, and start again if the log does not reach back', async () => {
    const state: Copier = { batches: [] }
    await site.start([copying(state)])
    await create('urn:x:1')
    await settles()
    await site.host.close()
    await create('urn:x:2')
    state.batches.length = 0
    await site.start([copying(state)])
    await settles()
    expect(state.batches.flatMap(({ changed }) => changed.map(({ id }) => id))).toEqual(['urn:x:2'])

    await site.host.close()
    for (let i = 3; i < 9; i++) await create(`urn:x:${i}`)
    await site.open.broker.remove('urn:x:1', 'http')
    for (let i = 0; i < 4; i++) await site.open.upkeep(7 * 3_600_000)
    expect(site.open.main.records.logAfter(0, 1)[0]!.n).toBeGreaterThan(3)
    state.batches.length = 0
    await site.start([copying(state)])
    await settles()
    expect(await copied()).not.toContainEqual(expect.objectContaining({ id: 'urn:x:1' }))
  })

  it('repeat a failed batch, and nothing of the failed attempt remains', async () => {
    let failures = 3
    const state: Copier = { batches: [], fails: () => failures-- > 0 }
    await site.start([copying(state)])
    await create('urn:x:1')
    await settles()
    expect(failures).toBeLessThan(0)
    expect(site.host.complaints()).toEqual([])
  })

  it('include observed values for plugins that want them, of every type and any number of streams', async () => {
    setLimit('pluginStreamsKept', 1)
    const seen: unknown[] = []
    await create('urn:x:1', 'Other')
    const watching = definePlugin({
      name: 'watcher',
      version: '1.0.0',
      summary: 'Watches',
      needs: ['changes'],
      start({ changes }: Host<object, 'changes'>) {
        changes.follow(changes.position(), {
          types: new Set(),
          observes: 'newest',
          take: ({ observed }) => void seen.push(...observed),
          readAnew: () => changes.position(),
        })
        return {}
      },
    })
    await site.start([watching])
    const at = Date.UTC(2026, 0, 1)
    await observe(site.open, 'urn:x:1', 'a', at, 7)
    await observe(site.open, 'urn:x:1', 'a', at + 1000, 8)
    const one = { id: 'urn:x:1', name: 'a' }
    await vi.waitFor(() => expect(seen.length).toBeGreaterThanOrEqual(1))
    await vi.waitFor(() => expect(seen.at(-1)).toMatchObject({ ...one, time: at + 1000, value: 8 }))
    await create('urn:x:2', 'Other')
    await observe(site.open, 'urn:x:2', 'a', at, { open: true })
    await vi.waitFor(() =>
      expect(seen.at(-1)).toMatchObject({ id: 'urn:x:2', name: 'a', time: at, value: { open: true } }),
    )
    await observe(site.open, 'urn:x:1', 'a', at + 2000, 'shut')
    await vi.waitFor(() => expect(seen.at(-1)).toMatchObject({ ...one, time: at + 2000, value: 'shut' }))
  })
})

describe('a plugin that fails', () => {
  it('is disabled, reports the reason, answers 503, and does not affect others', async () => {
    setLimit('pluginAttemptsMax', 3)
    const state: Copier = { batches: [], fails: () => true }
    const good = { ...copying({ batches: [] }), name: 'good' }
    await site.start([copying(state), good])
    await create('urn:x:1')
    await vi.waitFor(() => expect(site.host.complaints()).toEqual(['copier failed: not today']))
    expect(state.batches).toHaveLength(3)
    expect(() => site.ask('copier')).toThrow(
      expect.objectContaining({
        code: 'plugin.unavailable',
        entry: expect.objectContaining({ status: 503 }),
      }),
    )
    expect(site.host.status()).toMatchObject({ copier: { state: 'failed' }, good: { state: 'running' } })
    expect(site.open.metrics.expose()).toContain('selvedge_plugins_failed 1')
    const answer = async (): Promise<unknown> => (await site.ask('good')).json()
    await vi.waitFor(async () => expect(await answer()).toEqual(scanned()))
  })

  it('is disabled also if it cannot start', async () => {
    const broken = definePlugin({
      name: 'broken',
      version: '1.0.0',
      summary: 'Cannot start',
      needs: [],
      start() {
        throw new RangeError('no legs')
      },
    })
    await site.start([broken])
    expect(site.host.complaints()).toEqual(['broken failed: no legs'])
    expect(site.open.logged).toContainEqual(
      expect.objectContaining({ event: 'plugin.disabled', plugin: 'broken' }),
    )
  })

  it('does not affect others if its file cannot be closed either, because it is still read', async () => {
    const reading = definePlugin({
      name: 'reading',
      version: '1.0.0',
      summary: 'Never ends reading',
      needs: ['database'],
      start({ database, fail }: Host<object, 'database'>) {
        database.prepare('SELECT 1 AS n UNION SELECT 2').iterate().next()
        return {
          fetch() {
            fail(new Error('enough'))
            return new Response()
          },
        }
      },
    })
    await site.start([reading])
    await site.ask('reading')
    const failed = { event: 'plugin.failed', plugin: 'reading', during: 'its end' }
    await vi.waitFor(() => expect(site.open.logged).toContainEqual(expect.objectContaining(failed)))
    await site.host.close()
    expect(site.host.complaints()).toEqual(['reading failed: enough'])
  })
})

describe('the host of a plugin', () => {
  it('has only the capabilities that the plugin named', async () => {
    let given: object = {}
    const named = definePlugin({
      name: 'named',
      version: '1.0.0',
      summary: 'Looks at what it got',
      needs: ['mdr'],
      async start(host: Host<object, 'mdr'>) {
        given = host
        const answer = await host.mdr.exchange({ method: 'GET', path: '/anything?x=1' })
        expect(answer).toMatchObject({ status: 418, text: 'served' })
        return {}
      },
    })
    await site.start([named])
    expect(site.host.complaints()).toEqual([])
    const base = ['addresses', 'clock', 'context', 'fail', 'isOwn', 'log', 'metrics', 'settings', 'signal']
    expect(Object.keys(given).toSorted()).toEqual([...base, 'mdr'].toSorted())
  })

  it('returns its file after a restart, sets a damaged one aside, and refuses a newer one', async () => {
    const folder = join(site.folder, 'plugins')
    await site.start([copying({ batches: [] })])
    await create('urn:x:1')
    await settles()
    await site.host.close()
    writeFileSync(
      join(folder, 'copier.db'),
      'this is no database, and it is long enough to be looked at '.repeat(20),
    )
    await site.start([copying({ batches: [] })])
    await settles()
    expect(site.open.logged).toContainEqual(expect.objectContaining({ event: 'plugin.file-renewed' }))
    expect(readdirSync(folder)).toContain('copier.db.damaged')
    await site.host.close()
    await site.start([{ ...copying({ batches: [] }), tables: [] }])
    expect(site.host.complaints()[0]).toMatch(/^copier failed: .*has format 1; this version supports up to 0/)
  })

  /** Calls other plugins by name, when it is called itself. */
  const asking = (...names: readonly string[]) => {
    const answers: unknown[] = []
    const asker = definePlugin({
      name: 'asking',
      version: '1.0.0',
      summary: 'Asks others',
      needs: ['component'],
      start: ({ component }: Host<object, 'component'>) => ({
        async fetch() {
          for (const name of names) answers.push(await component(name).exchange({ method: 'GET', path: '/' }))
          return new Response()
        },
      }),
    })
    return { asker, answers }
  }

  it('gives access to other plugins by name, in process, and fails for an unknown name', async () => {
    const { asker, answers } = asking('copier', 'nobody', 'refusing')
    const refusing = definePlugin({
      name: 'refusing',
      version: '1.0.0',
      summary: 'Refuses',
      needs: [],
      start: () => ({
        fetch: () => Promise.reject(new GatewayError('ngsi-ld.bad-request-data', 'weights: is missing')),
      }),
    })
    await site.start([asker, refusing, copying({ batches: [] })])
    await site.ask('asking')
    expect(answers).toEqual([
      expect.objectContaining({ status: 200, text: '[]' }),
      expect.objectContaining({ failure: 'unreachable' }),
      expect.objectContaining({
        status: 400,
        text: expect.stringContaining('"detail":"weights: is missing"') as string,
      }),
    ])
  })

  it('returns the refusal of another plugin as a response', async () => {
    const refusing = plugin('refusing', () => {
      throw new GatewayError('ngsi-ld.bad-request-data', 'q: is no query')
    })
    const { asker, answers } = asking('refusing')
    await site.start([asker, refusing])
    await site.ask('asking')
    expect(answers).toEqual([
      expect.objectContaining({ status: 400, text: expect.stringContaining('is no query') as string }),
    ])
  })

  it('keeps its file open during a request, also while the plugin ends', async () => {
    const gate = Promise.withResolvers<void>()
    const slow = definePlugin({
      name: 'slow',
      version: '1.0.0',
      summary: 'Takes its time',
      needs: ['database'],
      tables,
      start: ({ database }: Host<object, 'database'>) => ({
        async fetch() {
          await gate.promise
          return Response.json(database.prepare('SELECT n FROM cursor').get())
        },
      }),
    })
    await site.start([slow])
    const answer = Promise.resolve(site.ask('slow'))
    const closing = site.host.close()
    expect(() => site.ask('slow')).toThrow(expect.objectContaining({ code: 'plugin.unavailable' }))
    gate.resolve()
    expect(await (await answer).json()).toEqual({ n: 0 })
    await closing
  })
})
