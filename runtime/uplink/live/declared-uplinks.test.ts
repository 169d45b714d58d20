/**
 * Uplinks of the settings: they equal subscriptions with the same content, and all mistakes are reported at
 * once.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadSettings } from '#config/load/load.ts'
import { mistakeLine } from '#config/schema/mistakes.ts'
import { createCoreContext } from '#ngsi-ld/context/context.ts'
import { parseUplinkOptions } from '#ngsi-ld/subscription/uplink-options.ts'
import { declare, openDeclared, uplinkCheck } from './declared-uplinks.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-declared-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

async function load(uplinks: readonly object[]) {
  const file = join(folder, 'selvedge.json')
  writeFileSync(file, JSON.stringify({ data: folder, uplinks }))
  const loaded = await loadSettings({ file, env: {}, uplinkCheck })
  return loaded.mistakes === undefined
    ? { uplinks: loaded.settings.uplinks, mistakes: [] }
    : { uplinks: [], mistakes: loaded.mistakes.map(mistakeLine) }
}

async function declared(settings: object) {
  const { uplinks, mistakes } = await load([
    { id: 'up', url: 'https://c.example', types: ['Tank'], ...settings },
  ])
  expect(mistakes).toEqual([])
  return declare(uplinks[0]!, createCoreContext('1.8'))
}

describe('an uplink of the settings', () => {
  it('equals a subscription with the same content', async () => {
    writeFileSync(join(folder, 'token'), 'abc\n', { mode: 0o600 })
    const { uplinks, mistakes } = await load([
      {
        id: 'cloud',
        url: 'https://centre.example',
        tenant: 'sites',
        types: ['Tank', 'Pump'],
        idPattern: '^urn:site:7:',
        q: 'level>3',
        attributes: ['level'],
        tokenFile: 'token',
        rate: 100,
        windows: [{ cron: '0 2 * * *', minutes: 60 }],
        budget: { bytes: 200_000_000 },
      },
    ])
    expect(mistakes).toEqual([])
    const context = createCoreContext('1.8')
    const subscription = declare(uplinks[0]!, context)
    expect(subscription).toMatchObject({
      id: 'cloud',
      entities: [{ idPattern: '^urn:site:7:' }, { idPattern: '^urn:site:7:' }],
      notification: {
        attributes: ['level'],
        endpoint: {
          uri: 'https://centre.example/ngsi-ld/v1',
          receiverInfo: [
            { key: 'NGSILD-Tenant', value: 'sites' },
            { key: 'Authorization', value: 'Bearer abc' },
          ],
        },
      },
    })
    expect(parseUplinkOptions(subscription.notification.endpoint.notifierInfo)).toEqual({
      rate: 100,
      budgetBytes: 200_000_000,
      thinSeconds: 60,
      windows: [{ cron: '0 2 * * *', minutes: 60 }],
      isPaused: false,
    })
  })

  it.each([
    [{ tokenFile: 'token' }, { Authorization: 'Bearer abc' }],
    [{ username: 'me', passwordFile: 'token' }, { Authorization: `Basic ${btoa('me:abc')}` }],
    [{ headerFiles: { 'X-Key': 'token' } }, { 'X-Key': 'abc' }],
    [
      { tenant: 'sites', tokenFile: 'token', headerFiles: { 'X-A': 'token', 'X-B': 'token' } },
      { 'NGSILD-Tenant': 'sites', Authorization: 'Bearer abc', 'X-A': 'abc', 'X-B': 'abc' },
    ],
  ])('sends the headers of %j', async (settings, headers) => {
    writeFileSync(join(folder, 'token'), 'abc\n', { mode: 0o600 })
    const { receiverInfo } = (await declared(settings)).notification.endpoint
    expect(Object.fromEntries(receiverInfo!.map(({ key, value }) => [key, value]))).toEqual(headers)
  })

  it.each([
    [{ rate: 0.5 }, { rate: 0.5 }],
    [{ bytesPerSecond: 1_000_000 }, { bytesPerSecond: 1_000_000 }],
    [{ bytesPerDay: 50_000_000 }, { bytesPerDay: 50_000_000 }],
    [{ budget: { bytes: 1000 } }, { budgetBytes: 1000 }],
    [{ budget: { observations: 7 } }, { budgetObservations: 7 }],
    [{ budget: { hours: 72 } }, { budgetHours: 72 }],
    [{ budget: { thinSeconds: 5 } }, { thinSeconds: 5 }],
    [{ scope: '/site-7' }, { scope: '/site-7' }],
    [{ isPaused: true }, { isPaused: true }],
  ])('has the options %j', async (settings, options) => {
    const { notifierInfo } = (await declared(settings)).notification.endpoint
    expect(parseUplinkOptions(notifierInfo)).toEqual({
      thinSeconds: 60,
      windows: [],
      isPaused: false,
      ...options,
    })
  })

  it.each([
    [{ q: 'level>3' }, { q: { kind: 'compare', operator: '>', value: { kind: 'number', value: 3 } } }],
    [{ scopeQ: '/site-7/#' }, { scopeQ: { levels: ['site-7'], below: true } }],
    [{ watchedAttributes: ['level'] }, { watchedAttributes: ['level'] }],
    [{ attributes: ['level'] }, { notification: { attributes: ['level'] } }],
    [{ throttling: 60 }, { throttling: 60 }],
    [{ types: [], ids: ['urn:t:1'] }, { entities: [{ types: { kind: 'any' }, ids: ['urn:t:1'] }] }],
  ])('selects by %j', async (settings, members) => {
    expect(await declared(settings)).toMatchObject(members)
  })

  it('sends entities of its sourceTenant only', async () => {
    const { uplinks } = await load([
      { id: 'hall', url: 'http://127.0.0.1:9', sourceTenant: 'hall' },
      { id: 'plain', url: 'http://127.0.0.1:9' },
    ])
    await using opened = new AsyncDisposableStack()
    const idsOf = openDeclared({
      settings: { uplinks, outbound: { allowLoopback: true } as never },
      contexts: {} as never,
      log: {} as never,
      opened,
    })
    expect(['', 'hall', 'other'].map((tenant) => [...idsOf(tenant).ids])).toEqual([['plain'], ['hall'], []])
  })

  it('sends everything without a selection', async () => {
    const { uplinks } = await load([{ id: 'all', url: 'http://127.0.0.1:9' }])
    expect(declare(uplinks[0]!, createCoreContext('1.8'))).not.toHaveProperty('entities')
  })

  it('reports all mistakes at once, each with its path', async () => {
    const { mistakes } = await load([
      { id: 'a', url: 'https://c/', q: 'level>>3', scopeQ: '', idPattern: '(', types: ['Tank'] },
      { id: 'a', url: 'http://c', caFile: 'x', username: 'u', geoQ: { georel: 'near' } },
    ])
    expect(mistakes.map((line) => line.split(':')[0])).toEqual(['uplinks[0].scopeQ'])
    const { mistakes: more } = await load([
      { id: 'a', url: 'https://c/', q: 'level>>3', scopeQ: '((', idPattern: '(', types: ['Tank'] },
      { id: 'a', url: 'http://c', caFile: 'x', username: 'u', geoQ: { georel: 'near' } },
    ])
    expect(more.map((line) => line.split(':')[0])).toEqual([
      'uplinks[0].idPattern',
      'uplinks[0].q',
      'uplinks[0].scopeQ',
      'uplinks[1].geoQ',
      'uplinks[1].id',
      'uplinks[1].passwordFile',
      'uplinks[1].url',
    ])
  })
})
