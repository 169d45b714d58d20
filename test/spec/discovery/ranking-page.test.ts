/** The ranking page in a real browser: its first result, on a gateway with one new device. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Browser, openBrowser } from '#test/kit/browser.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { describePeer } from '#test/kit/peers.ts'

describePeer('chromium', 'the ranking page', (path) => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-ranking-page-'))
  let gateway: GatewayInside
  let browser: Browser
  let url: string

  beforeAll(async () => {
    gateway = await startGatewayInside(folder, {})
    url = `http://127.0.0.1:${gateway.httpPort}`
    const sent = await fetch(`${url}/senml`, {
      method: 'POST',
      headers: { 'content-type': 'application/senml+json' },
      body: '[{"bn":"cellar:","n":"temperature","u":"Cel","v":21.5}]',
    })
    expect(sent.ok).toBe(true)
    browser = await openBrowser(path, url)
  })

  afterAll(async () => {
    await browser?.close()
    await gateway?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('ranks a new stream above 0 with the default weights, and requests no missing resource', async () => {
    const { page, strangers, complaints } = browser
    await page.goto(`${url}/ranking/`)
    const cell = page.locator('#list td')
    await expect
      .poll(async () => {
        // The index may not have the stream at the first query.
        await page.click('button')
        return (await cell.allTextContents())[1]
      })
      .toBe('urn:ngsi-ld:IotStream:cellar:temperature')
    expect(Number(await cell.first().textContent())).toBeGreaterThan(0)
    expect(await page.locator('#warning').textContent()).toBe('')
    expect([strangers, complaints]).toEqual([[], []])
  })
})
