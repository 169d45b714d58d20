/**
 * The pages of search and ranking where the gateway asks for its token: they open, data do not come without it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { openBrowser } from '#test/kit/browser.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { describePeer } from '#test/kit/peers.ts'

const token = 'a-token-of-thirty-two-characters'

async function startGuarded(folder: string): Promise<GatewayInside> {
  writeFileSync(join(folder, 'token'), `${token}\n`, { mode: 0o600 })
  return startGatewayInside(folder, {
    SELVEDGE_HOST: '0.0.0.0',
    SELVEDGE_HTTP_TOKEN_FILE: join(folder, 'token'),
    SELVEDGE_INDEXING_ENABLED: 'false',
    SELVEDGE_RANKING_BACKEND: 'mdr',
  })
}

it('gives the page to everybody and data to who has the token', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-search-access-'))
  const gateway = await startGuarded(folder)
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

describePeer('chromium', 'the page of the ranking', (path) => {
  it('opens without the token, and asks with the one that is typed, which is not in the address', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-ranking-access-'))
    const gateway = await startGuarded(folder)
    const origin = `http://127.0.0.1:${gateway.httpPort}`
    const status = async (at: string): Promise<number> => (await fetch(`${origin}/ranking${at}`)).status
    await vi.waitFor(async () => expect(await status('/spec')).toBe(200), { timeout: 20_000 })
    expect(await status('/ngsi-ld/v1/entities?type=T')).toBe(401)
    expect(await status('/ngsi-ld/v1/entities/urn:a')).toBe(401)
    const browser = await openBrowser(path, origin)
    const { page } = browser
    await page.goto(`${origin}/ranking/`)
    await page.locator('button').click()
    const answer = page.locator('#answer')
    await expect.poll(() => answer.textContent(), { timeout: 20_000 }).toMatch(/^401/)
    await page.locator('#token').fill(token)
    await page.locator('button').click()
    await expect.poll(() => answer.textContent(), { timeout: 20_000 }).toMatch(/^200/)
    expect(await page.locator('#address').textContent()).not.toContain(token)
    await browser.close()
    await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  }, 120_000)
})
