/**
 * The page at the root of the main listener: an entry for people with a browser, and the same links for
 * programs.
 */
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { startHttpGateway } from '#test/kit/http-gateway.ts'

interface Links {
  readonly product: string
  readonly sections: readonly { readonly title: string; readonly links: readonly { href: string }[] }[]
}

const browser = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const folder = mkdtempSync(join(tmpdir(), 'selvedge-front-'))
let gateway: GatewayInside

beforeAll(async () => {
  gateway = await startGatewayInside(folder, {})
})
afterAll(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

const hrefs = ({ sections }: Links): string[] =>
  sections.flatMap(({ links }) => links.map(({ href }) => href))

it('is HTML for browsers and for clients without a preference, JSON for clients that want JSON', async () => {
  const typeFor = async (headers: Record<string, string>) => {
    const { status, headers: answered } = await gateway.get('/', headers)
    expect([status, answered['vary']]).toEqual([200, 'Accept'])
    return answered['content-type']
  }
  for (const headers of [browser, { Accept: '*/*' }, {} as Record<string, string>])
    expect(await typeFor(headers)).toBe('text/html; charset=utf-8')
  for (const Accept of ['application/json', 'application/json, text/html;q=0.5', 'application/ld+json'])
    expect(await typeFor({ Accept })).toBe('application/json')
})

it('has only working links, the same in both forms, including pages of plugins', async () => {
  const json: Links = (await gateway.get('/', { Accept: 'application/json' })).json()
  const { text } = await gateway.get('/', browser)
  const inPage = [...text.matchAll(/href="([^"]+)"/g)].map(([, href]) => href!.replaceAll('&amp;', '&'))
  expect(json.product).toBe('selvedge')
  expect(inPage).toEqual(hrefs(json))
  expect(inPage).toEqual(expect.arrayContaining(['/search/', '/ranking/', '/openapi.json', '/health/ready']))
  for (const href of inPage) {
    const { status } = await gateway.get(href)
    expect([href, status]).toEqual([href, 200])
  }
})

it('loads no external resource, and its content security policy allows only its own style', async () => {
  const { text, headers } = await gateway.get('/', browser)
  const [, style] = /<style>(.*?)<\/style>/s.exec(text)!
  expect(headers['content-security-policy']).toContain("default-src 'none'")
  expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
  expect(headers['content-security-policy']).toContain(
    `style-src 'sha256-${hash('sha256', style!, 'base64')}'`,
  )
  expect([headers['x-content-type-options'], headers['referrer-policy']]).toEqual(['nosniff', 'no-referrer'])
  expect(style).toContain('color-scheme: light dark')
  expect(text).not.toMatch(/<script|<link|<img|<iframe|src=|style=|url\(|@import|https?:/)
})

it('answers HEAD, ignores parameters and refuses other methods', async () => {
  expect(await gateway.ask('HEAD', '/')).toMatchObject({ status: 200, text: '' })
  expect((await gateway.send('POST', '/', {})).status).toBe(405)
  expect((await gateway.get('/?anything=1')).status).toBe(200)
})

it('needs the token like other paths, and omits plugins that do not run', async () => {
  const guarded = await startHttpGateway({ token: 'secret' })
  expect((await guarded.ask('GET', '/', { headers: { Authorization: '' } })).status).toBe(401)
  const accepted = { Authorization: 'Bearer secret', Accept: 'application/json' }
  const { status, json } = await guarded.ask('GET', '/', { headers: accepted })
  expect(status).toBe(200)
  expect(hrefs(json()).filter((href) => /^\/(search|ranking|indexing)\//.test(href))).toEqual([])
  await guarded.close()
})
