/** The IDE in a real browser without Internet access. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Browser, openBrowser } from '#test/kit/browser.ts'
import { describePeer } from '#test/kit/peers.ts'
import { fieldEntities, platformOf, type SearchSite, startSearchSite } from '#test/kit/search-site.ts'

describePeer('chromium', 'the IDE', (path) => {
  let site: SearchSite
  let browser: Browser
  let address: string

  beforeAll(async () => {
    site = await startSearchSite()
    await site.create([
      platformOf('d0', ['Temperature'], [10, 50]),
      ...fieldEntities({ device: 'd0', field: 'Temperature', value: 21.5, completeness: 0.9 }),
    ])
    address = `${site.url}/search/`
    // The first visit builds it, unless `npm run build` has.
    expect((await fetch(address)).status).toBe(200)
    browser = await openBrowser(path, site.url)
  })

  afterAll(async () => {
    await browser?.close()
    await site?.close()
  })

  it('runs a typed query and shows the data', async () => {
    const { page, strangers, complaints } = browser
    await page.goto(address)
    const editor = page.locator('.graphiql-query-editor .CodeMirror')
    await editor.click()
    await page.keyboard.press('Control+A')
    await page.keyboard.press('Backspace')
    await page.keyboard.type('{ platforms { label ')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+Enter')
    await expect.poll(() => page.locator('.result-window').textContent()).toContain('platform d0')
    expect(strangers).toEqual([])
    expect(complaints).toEqual([])
    // The page updates its address shortly after the last key press.
    await expect.poll(() => new URL(page.url()).searchParams.get('query')).toContain('platforms')
  })

  it('opens a link with a query, and completes names from the schema', async () => {
    const { page } = browser
    const query = '{ streams { observation { hasSimpleResult } quality { completeness { rated } } } }'
    await page.goto(`${address}?query=${encodeURIComponent(query)}`)
    await page.locator('.graphiql-execute-button').click()
    await expect.poll(() => page.locator('.result-window').textContent()).toContain('21.5')
    await page.locator('.graphiql-query-editor .CodeMirror').click()
    await page.keyboard.press('Control+A')
    await page.keyboard.type('{ streamO')
    await page.keyboard.press('Control+Space')
    await expect.poll(() => page.locator('.CodeMirror-hints').textContent()).toContain('streamObservations')
  })

  it('shows the events of a subscription', async () => {
    const { page } = browser
    const query = 'subscription { platforms { label } }'
    await page.goto(`${address}?query=${encodeURIComponent(query)}`)
    await page.locator('.graphiql-execute-button').click()
    const result = page.locator('.result-window')
    await expect
      .poll(
        async () => {
          await site.create([{ ...platformOf('d0', ['Temperature'], [11, 50]) }])
          return result.textContent()
        },
        { interval: 300 },
      )
      .toContain('platform d0')
  })

  it('is small, compressed and cached by the browser', async () => {
    const html = await (await fetch(address)).text()
    const files = [...html.matchAll(/(?:src|href)="(ide\/[^"]+)"/g)].map(([, file]) => file!)
    expect(files).toHaveLength(2)
    for (const file of files) {
      const packed = await fetch(`${address}${file}`, { headers: { 'Accept-Encoding': 'br' } })
      expect(packed.status).toBe(200)
      expect(packed.headers.get('cache-control')).toContain('immutable')
      const tag = packed.headers.get('etag')!
      const again = await fetch(`${address}${file}`, { headers: { 'If-None-Match': tag } })
      expect(again.status).toBe(304)
    }
  })
})
