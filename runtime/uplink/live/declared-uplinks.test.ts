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
import { declare, uplinkCheck } from './declared-uplinks.ts'

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
