/**
 * The pages of search and ranking when the gateway requires a token: the pages open, but data requires the
 * token.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { openBrowser } from '#test/kit/browser.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { describePeer } from '#test/kit/peers.ts'

const token = 'a-token-of-thirty-two-characters'

async function startGuarded(
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<GatewayInside> {
  writeFileSync(join(folder, 'token'), `${token}\n`, { mode: 0o600 })
  return startGatewayInside(folder, {
    SELVEDGE_HOST: '0.0.0.0',
    SELVEDGE_HTTP_TOKEN_FILE: join(folder, 'token'),
    SELVEDGE_INDEXING_ENABLED: 'false',
    SELVEDGE_RANKING_BACKEND: 'mdr',
    ...env,
  })
}

it('serves the page without the token, and data only with it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-search-access-'))
  const gateway = await startGuarded(folder)
  const url = `http://127.0.0.1:${gateway.httpPort}/search`
  const status = async (path: string, headers: Record<string, string> = {}): Promise<number> =>
    (await fetch(url + path, { headers })).status
  await vi.waitFor(async () => expect(await status('/version')).toBe(200))
  expect(await status('/')).toBe(200)
  expect(await status('/ide/page-000000000000.js')).toBe(404)
  const query = '/graphql?query={platforms{id}}'
  expect(await status(query)).toBe(401)
  expect(await status('/graphql/stream')).toBe(401)
  expect(await status(query, { Authorization: `Bearer ${token}` })).toBe(200)
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

describe('a page of another origin', () => {
  const ask = async (url: string, init: RequestInit = {}): Promise<[number, string | null]> => {
    const headers = { Origin: 'https://elsewhere.example', ...init.headers }
    const answer = await fetch(url, { ...init, headers })
    return [answer.status, answer.headers.get('access-control-allow-origin')]
  }
  const list = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: '[]',
  }

  it('may send the token and read error responses, only at the paths of search', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-search-shared-'))
    const gateway = await startGuarded(folder, {
      SELVEDGE_SEARCH_PORT: '0',
      SELVEDGE_SEARCH_CORS: 'true',
    })
    const main = `http://127.0.0.1:${gateway.httpPort}`
    await vi.waitFor(async () => expect(await ask(`${main}/search/version`)).toEqual([200, '*']), {})
    const own = `http://127.0.0.1:${gateway.pluginPorts['search']}`
    for (const url of [`${main}/search`, own]) {
      expect(await ask(`${url}/graphql`, { method: 'OPTIONS' })).toEqual([204, '*'])
      expect(await ask(`${url}/graphql?query={platforms{id}}`)).toEqual([401, '*'])
      expect(await ask(`${url}/graphql`, list)).toEqual([400, '*'])
      expect(await ask(`${url}/nothing`, { headers: list.headers })).toEqual([404, '*'])
    }
    expect(await ask(`${main}/ngsi-ld/v1/entities?type=T`)).toEqual([401, null])
    expect(await ask(`${main}/ngsi-ld/v1/entities`, { method: 'OPTIONS' })).toEqual([401, null])
    expect(await ask(`${main}/ranking/ngsi-ld/v1/entities`, { method: 'OPTIONS' })).toEqual([401, null])
    await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('is rejected if search.cors is off', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-search-unshared-'))
    const gateway = await startGuarded(folder)
    const url = `http://127.0.0.1:${gateway.httpPort}/search`
    await vi.waitFor(async () => expect(await ask(`${url}/version`)).toEqual([200, null]), {})
    expect(await ask(`${url}/graphql`, { method: 'OPTIONS' })).toEqual([401, null])
    expect(await ask(`${url}/graphql`, list)).toEqual([400, null])
    await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  })
})

describePeer('chromium', 'the ranking page', (path) => {
  it('opens without the token, and sends the typed token outside the address', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-ranking-access-'))
    const gateway = await startGuarded(folder)
    const origin = `http://127.0.0.1:${gateway.httpPort}`
    const status = async (at: string): Promise<number> => (await fetch(`${origin}/ranking${at}`)).status
    await vi.waitFor(async () => expect(await status('/spec')).toBe(200))
    expect(await status('/ngsi-ld/v1/entities?type=T')).toBe(401)
    expect(await status('/ngsi-ld/v1/entities/urn:a')).toBe(401)
    const browser = await openBrowser(path, origin)
    const { page } = browser
    await page.goto(`${origin}/ranking/`)
    await page.locator('button').click()
    const answer = page.locator('#answer')
    await expect.poll(() => answer.textContent()).toMatch(/^401/)
    await page.locator('#token').fill(token)
    await page.locator('button').click()
    await expect.poll(() => answer.textContent()).toMatch(/^200/)
    expect(await page.locator('#address').textContent()).not.toContain(token)
    await browser.close()
    await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  })
})
