/**
 * A centre that always fails on histories and accepts everything else: current values never wait for past
 * ones. When it accepts histories again, they are sent completely and in order.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { restoreLimits } from '#test/kit/ceilings.ts'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { createLesserBroker, type LesserBroker } from '#test/kit/lesser-broker.ts'

const v1 = '/ngsi-ld/v1'
const tank = 'urn:tank:1'
const withinMs = { interval: 50 }
const level = (n: number): object => ({
  type: 'Property',
  value: n,
  observedAt: new Date(1_767_225_600_000 + n * 1000).toISOString().replace('.000', ''),
})

describe('an uplink to a centre that fails on histories', () => {
  let folders: string
  let site: GatewayInside
  let hub: GatewayInside
  let centre: LesserBroker
  let failing: Record<string, number>

  const send = async (method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await site.send(method, path, body)
    if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
  }
  const observe = (n: number): Promise<void> =>
    send('PATCH', `${v1}/entities/${tank}/attrs`, { level: level(n) })
  const levels = async (of: GatewayInside): Promise<unknown> =>
    (await of.get(`${v1}/temporal/entities/${tank}?attrs=level&options=temporalValues`)).json()
  const status = async (): Promise<Readonly<Record<string, unknown>>> =>
    (await site.get('/selvedge/v1/uplinks/urn:up')).json()
  /** How long (ms) it took until a value was current at the centre. */
  const arrives = async (n: number, ...before: readonly number[]): Promise<number> => {
    const began = performance.now()
    for (const one of [...before, n]) await observe(one)
    await vi.waitFor(async () => {
      expect((await hub.get(`${v1}/entities/${tank}`)).json()).toMatchObject({ level: { value: n } })
    }, withinMs)
    return performance.now() - began
  }

  beforeEach(async () => {
    folders = mkdtempSync(join(tmpdir(), 'selvedge-past-'))
    ;[site, hub] = await Promise.all([
      startGatewayInside(join(folders, 'site'), noPlugins),
      startGatewayInside(join(folders, 'hub'), noPlugins),
    ])
    failing = {}
    centre = await createLesserBroker(hub.httpPort!, failing)
  })
  afterEach(async () => {
    await Promise.all([site.close(), hub.close()])
    await centre.close()
    restoreLimits()
    rmSync(folders, { recursive: true })
  })

  it.each([
    ['503', 'one like this', 503, true],
    ['500', 'one like this', 500, true],
    ['503', 'another broker', 503, false],
  ])(
    'with %s (%s): live values arrive within 2 s, and then the histories',
    async (_, __, code, isOurs) => {
      failing[`${v1}/temporal`] = code
      if (!isOurs) failing['/selvedge'] = 404
      await send('POST', `${v1}/entities`, { id: tank, type: 'Tank', level: level(1) })
      for (const n of [2, 3, 4]) await observe(n)
      const notifierInfo = [{ key: 'selvedge:mode', value: 'uplink' }]
      await send('POST', `${v1}/subscriptions`, {
        id: 'urn:up',
        type: 'Subscription',
        entities: [{ type: 'Tank' }],
        notification: { endpoint: { uri: `${centre.url}${v1}`, notifierInfo } },
      })
      await vi.waitFor(
        async () => expect((await status())['historyTrouble']).toContain(String(code)),
        withinMs,
      )
      // Each comes with slightly earlier values, which are sent as past.
      let n = 10
      for (let i = 0; i < 12; i++, n += 10) {
        const before = i % 2 === 0 ? [] : [n - 3, n - 2, n - 1]
        expect(await arrives(n, ...before)).toBeLessThan(2000)
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
      const during = await status()
      expect(during).toMatchObject({ state: 'catching-up', refused: 0 })
      expect(during['trouble']).toBeUndefined()
      expect((await site.get('/health/ready')).text).toContain('no history')

      delete failing[`${v1}/temporal`]
      await vi.waitFor(async () => expect(await levels(hub)).toEqual(await levels(site)), {
        timeout: 100_000,
        interval: 200,
      })
      expect((await status())['historyTrouble']).toBeUndefined()
    },
    180_000,
  )
})
