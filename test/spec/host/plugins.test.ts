/**
 * What the host promises plugins, and what it promises the gateway about them: what they get, that what they derive from
 * the log is exact whatever happens, and that one that fails rests without the others.
 */

import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { GatewayError } from '#base/errors.ts'
import {
  type ChangeBatch,
  type ChangesPort,
  definePlugin,
  type Host,
  type PluginDatabase,
  type Running,
} from '#contract'
import type { Plugins } from '#host/plugins.ts'
import type { Entity } from '#ngsi-ld/entity.ts'
import { type OpenBroker, observe, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { environment, startPlugins } from '#test/kit/plugins.ts'

let temporary: ReturnType<typeof temporaryFolder>
let open: OpenBroker
let host: Plugins | undefined
beforeEach(async () => {
  temporary = temporaryFolder()
  open = await openBroker(temporary.folder)
})
afterEach(async () => {
  restoreLimits()
  await host?.close()
  host = undefined
  await open.close()
  temporary.remove()
})

const create = (id: string, type = 'T', value = 1): Promise<void> =>
  open.broker.create({ id, type, a: { type: 'Property', value } } as Entity, 'http')

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
  const answer = await host!.fetch('copier', new Request('http://x/'), environment())
  return answer.json()
}

function scanned(): unknown {
  const { entities } = open.broker.query({
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

const settles = (): Promise<void> => vi.waitFor(async () => expect(await copied()).toEqual(scanned()), 5000)

describe('what a plugin follows', () => {
  it('is what the broker holds, after creates, changes, deletes and a change of type', async () => {
    const state: Copier = { batches: [] }
    await create('urn:x:before')
    host = await startPlugins(open, temporary.folder, [copying(state)])
    for (let i = 0; i < 20; i++) await create(`urn:x:${i}`, i % 3 === 0 ? 'Other' : 'T', i)
    await open.broker.remove('urn:x:4', 'http')
    await open.broker.replace({ id: 'urn:x:5', type: 'Other' } as Entity, { by: 'http' })
    await open.broker.append('urn:x:7', { b: { type: 'Property', value: 'new' } } as never, {
      by: 'http',
      noOverwrite: false,
    })
    await settles()
    expect((scanned() as unknown[]).length).toBe(12)
    expect(state.batches.every(({ observed }) => observed.length === 0)).toBe(true)
  })

  it('names an entity once per batch, however often it changed', async () => {
    setLimit('pluginBatchMs', 60_000)
    const state: Copier = { batches: [] }
    await create('urn:x:1')
    for (let value = 0; value < 30; value++)
      await open.broker.append('urn:x:1', { a: { type: 'Property', value } } as never, {
        by: 'http',
        noOverwrite: false,
      })
    host = await startPlugins(open, temporary.folder, [copying(state)])
    await settles()
    expect(state.batches.flatMap(({ changed }) => changed.map(({ id }) => id))).toEqual(['urn:x:1'])
  })

  it('goes on where it was after a restart, and reads anew where the log does not reach back', async () => {
    const state: Copier = { batches: [] }
    host = await startPlugins(open, temporary.folder, [copying(state)])
    await create('urn:x:1')
    await settles()
    await host.close()
    await create('urn:x:2')
    state.batches.length = 0
    host = await startPlugins(open, temporary.folder, [copying(state)])
    await settles()
    expect(state.batches.flatMap(({ changed }) => changed.map(({ id }) => id))).toEqual(['urn:x:2'])

    await host.close()
    for (let i = 3; i < 9; i++) await create(`urn:x:${i}`)
    await open.broker.remove('urn:x:1', 'http')
    for (let i = 0; i < 4; i++) await open.upkeep(7 * 3_600_000)
    expect(open.main.records.logAfter(0, 1)[0]!.n).toBeGreaterThan(3)
    state.batches.length = 0
    host = await startPlugins(open, temporary.folder, [copying(state)])
    await settles()
    expect(await copied()).not.toContainEqual(expect.objectContaining({ id: 'urn:x:1' }))
  })

  it('takes a batch again that failed, and nothing of the failed one stays', async () => {
    let failures = 3
    const state: Copier = { batches: [], fails: () => failures-- > 0 }
    host = await startPlugins(open, temporary.folder, [copying(state)])
    await create('urn:x:1')
    await settles()
    expect(failures).toBeLessThan(0)
    expect(host.complaints()).toEqual([])
  })

  it('tells values observed to who wants them', async () => {
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
          observes: true,
          take: ({ observed }) => void seen.push(...observed),
          readAnew: () => changes.position(),
        })
        return {}
      },
    })
    host = await startPlugins(open, temporary.folder, [watching])
    const at = Date.UTC(2026, 0, 1)
    await observe(open, 'urn:x:1', 'a', at, 7)
    await observe(open, 'urn:x:1', 'a', at + 1000, 8)
    const one = { id: 'urn:x:1', name: 'a' }
    await vi.waitFor(() => expect(seen.length).toBeGreaterThanOrEqual(1))
    await vi.waitFor(() => expect(seen.at(-1)).toEqual({ ...one, time: at + 1000, value: 8 }))
  })
})

describe('a plugin that fails', () => {
  it('rests, says why, answers 503, and leaves the others alone', async () => {
    setLimit('pluginAttemptsMax', 3)
    const state: Copier = { batches: [], fails: () => true }
    const good = { ...copying({ batches: [] }), name: 'good' }
    host = await startPlugins(open, temporary.folder, [copying(state), good])
    await create('urn:x:1')
    await vi.waitFor(() => expect(host!.complaints()).toEqual(['copier failed: not today']))
    expect(state.batches).toHaveLength(3)
    expect(() => host!.fetch('copier', new Request('http://x/'), environment())).toThrow(
      expect.objectContaining({
        code: 'plugin.unavailable',
        entry: expect.objectContaining({ status: 503 }),
      }),
    )
    expect(host.status()).toMatchObject({ copier: { state: 'quarantined' }, good: { state: 'running' } })
    expect(open.metrics.expose()).toContain('selvedge_plugins_quarantined 1')
    const answer = async (): Promise<unknown> =>
      (await host!.fetch('good', new Request('http://x/'), environment())).json()
    await vi.waitFor(async () => expect(await answer()).toEqual(scanned()))
  })

  it('rests also where it cannot start', async () => {
    const broken = definePlugin({
      name: 'broken',
      version: '1.0.0',
      summary: 'Cannot start',
      needs: [],
      start() {
        throw new RangeError('no legs')
      },
    })
    host = await startPlugins(open, temporary.folder, [broken])
    expect(host.complaints()).toEqual(['broken failed: no legs'])
    expect(open.logged).toContainEqual(
      expect.objectContaining({ event: 'plugin.quarantined', plugin: 'broken' }),
    )
  })
})

describe('what a plugin gets', () => {
  it('is what it named and nothing else', async () => {
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
    host = await startPlugins(open, temporary.folder, [named])
    expect(host.complaints()).toEqual([])
    const base = ['addresses', 'clock', 'context', 'isOwn', 'log', 'metrics', 'settings', 'signal']
    expect(Object.keys(given).toSorted()).toEqual([...base, 'mdr'].toSorted())
  })

  it('has its file back after a restart, one that is damaged is set aside, one that is newer refused', async () => {
    const folder = join(temporary.folder, 'plugins')
    host = await startPlugins(open, temporary.folder, [copying({ batches: [] })])
    await create('urn:x:1')
    await settles()
    await host.close()
    writeFileSync(
      join(folder, 'copier.db'),
      'this is no database, and it is long enough to be looked at '.repeat(20),
    )
    host = await startPlugins(open, temporary.folder, [copying({ batches: [] })])
    await settles()
    expect(open.logged).toContainEqual(expect.objectContaining({ event: 'plugin.file-renewed' }))
    expect(readdirSync(folder)).toContain('copier.db.damaged')
    await host.close()
    host = await startPlugins(open, temporary.folder, [{ ...copying({ batches: [] }), tables: [] }])
    expect(host.complaints()[0]).toMatch(/^copier failed: .*has format 1; this version knows 0/)
  })

  it('is another plugin by its name, in process, and nothing where there is none', async () => {
    const answers: unknown[] = []
    const asking = definePlugin({
      name: 'asking',
      version: '1.0.0',
      summary: 'Asks another',
      needs: ['component'],
      start: ({ component }: Host<object, 'component'>) => ({
        async fetch() {
          answers.push(await component('copier').exchange({ method: 'GET', path: '/' }))
          answers.push(await component('nobody').exchange({ method: 'GET', path: '/' }))
          answers.push(await component('refusing').exchange({ method: 'GET', path: '/' }))
          return new Response()
        },
      }),
    })
    const refusing = definePlugin({
      name: 'refusing',
      version: '1.0.0',
      summary: 'Refuses',
      needs: [],
      start: () => ({
        fetch: () => Promise.reject(new GatewayError('ngsi-ld.bad-request-data', 'weights: is missing')),
      }),
    })
    host = await startPlugins(open, temporary.folder, [asking, refusing, copying({ batches: [] })])
    await host.fetch('asking', new Request('http://x/'), environment())
    expect(answers).toEqual([
      expect.objectContaining({ status: 200, text: '[]' }),
      expect.objectContaining({ failure: 'unreachable' }),
      expect.objectContaining({
        status: 400,
        text: expect.stringContaining('"detail":"weights: is missing"') as string,
      }),
    ])
  })

  it('answers with what another plugin refuses, instead of being without an answer', async () => {
    const refusing = plugin('refusing', () => {
      throw new GatewayError('ngsi-ld.bad-request-data', 'q: is no query')
    })
    let answer: unknown
    const asking = definePlugin({
      name: 'asking',
      version: '1.0.0',
      summary: 'Asks another',
      needs: ['component'],
      start: ({ component }: Host<object, 'component'>) => ({
        async fetch() {
          answer = await component('refusing').exchange({ method: 'GET', path: '/' })
          return new Response()
        },
      }),
    })
    host = await startPlugins(open, temporary.folder, [asking, refusing])
    await host.fetch('asking', new Request('http://x/'), environment())
    expect(answer).toMatchObject({ status: 400, text: expect.stringContaining('is no query') })
  })

  it('has its file while it works on a request, also when it is to end', async () => {
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
    host = await startPlugins(open, temporary.folder, [slow])
    const answer = Promise.resolve(host.fetch('slow', new Request('http://x/'), environment()))
    const closing = host.close()
    expect(() => host!.fetch('slow', new Request('http://x/'), environment())).toThrow(
      expect.objectContaining({ code: 'plugin.unavailable' }),
    )
    gate.resolve()
    expect(await (await answer).json()).toEqual({ n: 0 })
    await closing
  })
})
