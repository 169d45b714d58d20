/** Plugins start while the gateway already serves. Requests to a starting plugin wait, for a limited time. */
import { describe, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { type Capability, definePlugin, type Plugin } from '#contract'
import { guard } from '#http/listener/listener-access.ts'
import type { HttpEnv } from '#http/request/http-environment.ts'
import { calmTime } from '#test/kit/calm-time.ts'
import { setLimit } from '#test/kit/ceilings.ts'
import { pluginsOfFile } from '#test/kit/plugins-of-file.ts'

const patience = 10_000
const site = pluginsOfFile()

describe('a starting plugin', () => {
  const echo = (start: () => Promise<void>) =>
    definePlugin({
      name: 'echo',
      version: '1.0.0',
      summary: 'Answers with what it is sent',
      needs: [],
      async start() {
        await start()
        return { fetch: async (_request, { body }) => new Response(await body()) }
      },
    })
  const ask = (): Promise<Response> => {
    const request = new Request('http://x/', { method: 'POST', body: 'hello' })
    return Promise.resolve(site.ask('echo', request, 'hello'))
  }

  it('answers requests that arrived before it had started', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    site.openPlugins([echo(() => promise)])
    const asked = ask()
    const started = site.host.start()
    expect(site.host.status()).toMatchObject({ echo: { state: 'starting' } })
    resolve()
    expect(await (await asked).text()).toBe('hello')
    await started
  })

  it('answers 503 if its start takes too long', async () => {
    setLimit('pluginWaitMs', 10)
    const { promise, resolve } = Promise.withResolvers<void>()
    const started = site.start([echo(() => promise)])
    await expect(ask()).rejects.toMatchObject({ code: 'plugin.unavailable' })
    resolve()
    await started
  })

  it('knows its open paths only after its start, and requests for them wait', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const plugin = definePlugin({
      name: 'echo',
      version: '1.0.0',
      summary: 'Answers everybody',
      needs: [],
      async start() {
        await promise
        return { open: ['/', '/notify'], fetch: async () => new Response('taken') }
      },
    })
    const started = site.start([plugin])
    const fetch = guard(
      async (request) => site.ask('echo', request),
      'right',
      ({ code }) => new Response(code, { status: 401 }),
      (path, method) => site.host.isOpen('echo', path, method),
    )
    const paths = ['/', '/notify', '/notify/more', '/other', '//other']
    const asked = paths.map((path) => fetch(new Request(`http://x${path}`), {} as HttpEnv))
    resolve()
    const answers = await Promise.all(asked.map((one) => Promise.resolve(one)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 401, 401])
    await started
  })

  it('that is closed meanwhile ends all waits, and opens nothing any more', async () => {
    const { promise, resolve } = Promise.withResolvers<Plugin<never, Capability>>()
    let isStarted = false
    const plugin = echo(async () => {
      isStarted = true
    })
    const started = site.start([plugin], {}, () => promise)
    const asked = ask()
    await new Promise((done) => setTimeout(done, 10))
    const passed = calmTime()
    await site.host.close()
    await expect(asked).rejects.toMatchObject({ code: 'plugin.unavailable' })
    expect(passed()).toBeLessThan(limits.pluginWaitMs.value / 2)
    resolve(plugin)
    await started
    expect(isStarted).toBe(false)
  })

  describe('that is closed during its start', () => {
    const seen: unknown[] = []
    let begin = (): void => undefined
    const opening = (until: Promise<void>) =>
      definePlugin({
        name: 'echo',
        version: '1.0.0',
        summary: 'Opens its file',
        needs: ['database'],
        async start({ database, signal }) {
          begin()
          await until
          seen.push(signal.aborted, database.prepare('SELECT 7 AS n').get())
          return { close: () => void seen.push('closed') }
        },
      })
    const isBegun = (): Promise<void> =>
      new Promise((done) => {
        begin = done
      })

    it('keeps its capabilities until it has started, and is closed then', async () => {
      seen.length = 0
      const { promise, resolve } = Promise.withResolvers<void>()
      const begun = isBegun()
      void site.start([opening(promise)])
      await begun
      const closed = site.host.close()
      await new Promise((done) => setTimeout(done, 10))
      resolve()
      await closed
      expect(seen).toEqual([true, { n: 7 }, 'closed'])
    })

    it('is awaited no longer than a running plugin', async () => {
      setLimit('pluginDrainMs', 10)
      const { promise, resolve } = Promise.withResolvers<void>()
      const begun = isBegun()
      const started = site.start([opening(promise)])
      await begun
      await site.host.close()
      expect(site.host.status()).toMatchObject({ echo: { state: 'closed' } })
      resolve()
      await started
    })
  })

  it('is reported by health if it takes too long', async () => {
    setLimit('pluginStartMs', 10)
    const { promise, resolve } = Promise.withResolvers<void>()
    const started = site.start([echo(() => promise)])
    await vi.waitFor(() => expect(site.host.complaints()).toEqual(['echo has not started yet']), patience)
    resolve()
    await started
    expect(site.host.complaints()).toEqual([])
  })

  it('that fails during its start is closed if the start succeeds later', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let isClosed = false
    let begin = (): void => undefined
    const isFollowing = new Promise<void>((done) => {
      begin = done
    })
    const plugin = definePlugin({
      name: 'echo',
      version: '1.0.0',
      summary: 'Fails at what it follows',
      needs: ['changes'],
      async start({ changes }) {
        changes.follow(changes.position(), {
          take: async () => {
            throw new RangeError('a bad batch')
          },
          readAnew: async () => 0,
        })
        begin()
        await promise
        return {
          close: async () => {
            isClosed = true
          },
        }
      },
    })
    setLimit('pluginAttemptsMax', 1)
    const started = site.start([plugin])
    await isFollowing
    await site.open.broker.create({ id: 'urn:r:1', type: 'Room' }, 'http')
    await vi.waitFor(() => expect(site.host.status()).toMatchObject({ echo: { state: 'failed' } }), patience)
    resolve()
    await started
    expect(isClosed).toBe(true)
  })
})
