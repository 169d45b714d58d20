/**
 * The search enabler where the gateway asks for its token: the page opens, data do not come without it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { startGatewayInside } from '#test/kit/gateway-inside.ts'

it('gives the page to everybody and data to who has the token', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-search-access-'))
  const token = 'a-token-of-thirty-two-characters'
  writeFileSync(join(folder, 'token'), `${token}\n`, { mode: 0o600 })
  const gateway = await startGatewayInside(folder, {
    SELVEDGE_HOST: '0.0.0.0',
    SELVEDGE_HTTP_TOKEN_FILE: join(folder, 'token'),
    SELVEDGE_INDEXING_ENABLED: 'false',
    SELVEDGE_RANKING_BACKEND: 'mdr',
  })
  const url = `http://127.0.0.1:${gateway.httpPort}/search`
  const status = async (path: string, headers: Record<string, string> = {}): Promise<number> =>
    (await fetch(url + path, { headers })).status
  await vi.waitFor(async () => expect(await status('/version')).toBe(200), { timeout: 20_000 })
  expect(await status('/')).toBe(200)
  expect(await status('/ide/page-000000000000.js')).toBe(404)
  const query = '/graphql?query={platforms{id}}'
  expect(await status(query)).toBe(401)
  expect(await status('/graphql/stream')).toBe(401)
  expect(await status(query, { Authorization: `Bearer ${token}` })).toBe(200)
  expect((await fetch(`${url}/graphql`, { method: 'OPTIONS' })).status).toBe(401)
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
}, 120_000)
