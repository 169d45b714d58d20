/**
 * Plugins start while the gateway serves already. Who asks one before it has started waits for it, and not for ever.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { definePlugin } from '#contract'
import type { Plugins } from '#host/plugins.ts'
import { type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { environment, openPlugins } from '#test/kit/plugins.ts'

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

describe('a plugin that starts', () => {
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
    return Promise.resolve(host!.fetch('echo', request, environment('hello')))
  }

  it('answers who asked it before it had started', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    host = openPlugins(open, temporary.folder, [echo(() => promise)])
    const asked = ask()
    const started = host.start()
    expect(host.status()).toMatchObject({ echo: { state: 'starting' } })
    resolve()
    expect(await (await asked).text()).toBe('hello')
    await started
  })

  it('answers 503 when that takes too long', async () => {
    setLimit('pluginWaitMs', 10)
    const { promise, resolve } = Promise.withResolvers<void>()
    host = openPlugins(open, temporary.folder, [echo(() => promise)])
    const started = host.start()
    await expect(ask()).rejects.toMatchObject({ code: 'plugin.unavailable' })
    resolve()
    await started
  })
})
