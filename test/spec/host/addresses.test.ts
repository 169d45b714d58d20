/**
 * The addresses that components announce: they are reachable, also if a component listens on all addresses.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { startGatewayInside } from '#test/kit/gateway-inside.ts'

it('a component that listens on all addresses receives notifications at one of them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-addresses-'))
  const gateway = await startGatewayInside(folder, {
    SELVEDGE_HOST: '0.0.0.0',
    SELVEDGE_HTTP_TOKEN_FILE: join(folder, 'token'),
    SELVEDGE_INDEXING_PORT: '0',
    SELVEDGE_SEARCH_ENABLED: 'false',
    SELVEDGE_RANKING_ENABLED: 'false',
  })
  try {
    const headers = { 'X-Auth-Token': readFileSync(join(folder, 'token'), 'utf8').trim() }
    await vi.waitFor(async () => {
      const answer = await gateway.get('/ngsi-ld/v1/subscriptions?options=followers', headers)
      const told = answer.json() as readonly { notification: { endpoint: { uri: string } } }[]
      const hosts = told.map(({ notification }) => new URL(notification.endpoint.uri).host)
      expect([...new Set(hosts)]).toEqual([`127.0.0.1:${gateway.pluginPorts['indexing']}`])
    })
  } finally {
    await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
