/** A registered broker is read in full at the times of `indexing.crawl`, and not before. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import indexing from '#plugins/indexing/plugin.ts'
import { openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { environment, startPlugins } from '#test/kit/plugins.ts'

afterEach(restoreLimits)

it('is read at the scheduled minute', async () => {
  setLimit('pluginTimetableMs', 20)
  // Nothing else triggers a full read in this test.
  setLimit('followCheckMs', 60_000)
  const { folder, remove } = temporaryFolder()
  const broker = createServer((request, response) => {
    if (request.method === 'POST')
      response.writeHead(201, { Location: '/ngsi-ld/v1/subscriptions/urn:s' }).end()
    else if (request.url!.includes('subscriptions')) response.writeHead(404).end('{}')
    else response.end('[]')
  })
  await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(broker.address() as AddressInfo).port}`
  const open = await openBroker(folder)
  const startAt = new Date(Math.ceil(open.clock.now() / 60_000 + 5) * 60_000)
  const host = await startPlugins(open, join(folder, 'p'), [indexing as never], {
    brokers: [{ url }],
    pagesPerSecond: 1000,
    learn: false,
    crawl: `${startAt.getMinutes()} ${startAt.getHours()} * * *`,
  })
  const lastCrawl = async (): Promise<string | undefined> => {
    const answer = await host.fetch('indexing', new Request('http://x/api/broker'), environment())
    const { result } = (await answer.json()) as { result: { host: string; lastCrawl?: { began: string } }[] }
    return result.find((one) => one.host === url)?.lastCrawl?.began
  }
  const patience = { interval: 20 }
  await vi.waitFor(async () => expect(await lastCrawl()).toBeDefined(), patience)
  const first = await lastCrawl()
  const passUntil = (ms: number): void => open.clock.pass(ms - open.clock.now())
  passUntil(startAt.getTime() - 60_000)
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(await lastCrawl()).toBe(first)
  passUntil(startAt.getTime() + 1000)
  await vi.waitFor(async () => expect(await lastCrawl()).not.toBe(first), patience)
  expect(Date.parse((await lastCrawl())!) - Date.parse(first!)).toBeGreaterThan(60_000)
  await host.close()
  await open.close()
  broker.closeAllConnections()
  broker.close()
  remove()
})
