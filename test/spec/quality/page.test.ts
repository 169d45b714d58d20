/** The page of the quality analyser in a real browser without Internet access, and the interface behind it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { watched } from '#plugins/quality/brokers/analyser-watches.ts'
import { type Browser, openBrowser } from '#test/kit/browser.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { describePeer } from '#test/kit/peers.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const qoi = 'https://w3id.org/iot/qoi#'
const rdfs = 'http://www.w3.org/2000/01/rdf-schema#'
const hostile = '<script>document.title = "broken"</script>'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-page-'))
let gateway: GatewayInside
let origin: string

beforeAll(async () => {
  gateway = await startGatewayInside(folder, {
    SELVEDGE_QUALITY_ENABLED: 'true',
    SELVEDGE_QUALITY_WRITE_INTERVAL_MS: '100',
  })
  origin = `http://127.0.0.1:${gateway.httpPort}`
  await vi.waitFor(async () => expect((await gateway.get('/quality/status')).status).toBe(200), {})
})
afterAll(async () => {
  await gateway?.close()
  rmSync(folder, { recursive: true, force: true })
})

const value = (given: unknown, more: object = {}) => ({ type: 'Property', value: given, ...more })
const to = (object: string) => ({ type: 'Relationship', object })
const idOf = (name: string) => `urn:ngsi-ld:IotStream:${name}`

async function create(name: string, { label, intervalMs }: { label: string; intervalMs: number }) {
  const made = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', [
    {
      id: `urn:ngsi-ld:Sensor:${name}`,
      type: `${sosa}Sensor`,
      [`${sosa}observes`]: to(`urn:ngsi-ld:ObservableProperty:${name}`),
      [`${qoi}updateinterval`]: value(intervalMs, { [`${qoi}unit`]: value('ms') }),
    },
    {
      id: `urn:ngsi-ld:ObservableProperty:${name}`,
      type: `${sosa}ObservableProperty`,
      [`${rdfs}label`]: value(label),
    },
    {
      id: idOf(name),
      type: `${iotStream}IotStream`,
      [`${iotStream}generatedBy`]: to(`urn:ngsi-ld:Sensor:${name}`),
    },
    {
      id: `urn:ngsi-ld:StreamObservation:${name}`,
      type: `${iotStream}StreamObservation`,
      [`${iotStream}belongsTo`]: to(idOf(name)),
    },
  ])
  expect(made.status).toBe(201)
}

async function observe(name: string, given: number): Promise<void> {
  const path = `/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:${name}/attrs`
  const answer = await gateway.send('POST', path, {
    [`${sosa}hasSimpleResult`]: value(given, { observedAt: new Date().toISOString() }),
  })
  expect(answer.status).toBeLessThan(300)
}

const api = (path: string) => gateway.get(`/quality/api/${path}`)
const result = async <T>(path: string) => ((await api(path)).json() as { result: T[] }).result

describe('the interface of the page', () => {
  it('reads the rated values of a stream from the history of its quality', async () => {
    await create('history', { label: 'temperature', intervalMs: 3_600_000 })
    await observe('history', 20)
    const rated = async () => {
      const answer = await api(`histories/${encodeURIComponent(idOf('history'))}`)
      return ((answer.json() as Record<string, [number, number][]>)['plausibility'] ?? []).map(
        ([, one]) => one,
      )
    }
    await vi.waitFor(async () => expect(await rated()).toEqual([1]), {})
    await observe('history', 99)
    await vi.waitFor(async () => expect(await rated()).toEqual([1, 0.6]), {})
    expect((await api('histories/urn:nothing')).status).toBe(404)
  })

  it('answers under the prefix of the original component, too', async () => {
    for (const prefix of ['/semanticenrichment', '/quality/semanticenrichment']) {
      const { json, status } = await gateway.get(`${prefix}/api/streams?limit=1`)
      expect([status, json()]).toMatchObject([200, { result: [{}] }])
      expect((await gateway.get(`${prefix}/ui`)).status).toBe(200)
      expect((await gateway.get(`${prefix}/status`)).text).toBe('running')
      const page = await fetch(`${origin}${prefix}/log`, { redirect: 'manual' })
      expect([page.status, page.headers.get('location')]).toEqual([303, `${prefix}/ui#log`])
    }
    expect((await gateway.get('/quality/')).text).toBe('running')
    const labels = async () => (await result<{ label: string }>('properties')).map(({ label }) => label)
    const post = async (path: string, fields: Record<string, string>) => {
      const body = new URLSearchParams(fields)
      const answer = await fetch(`${origin}/semanticenrichment/${path}`, {
        method: 'POST',
        body,
        redirect: 'manual',
      })
      return answer.status
    }
    const metadata = '{"valuetype": "float", "min": 0, "max": 14, "regexp": "NA"}'
    expect(await post('addmetadata', { type: 'pH', metadata })).toBe(303)
    expect(await labels()).toContain('ph')
    expect(await post('deletemetadata', { mtype: 'ph' })).toBe(303)
    expect(await labels()).not.toContain('ph')
    const created = async () =>
      (await result<{ id: string; isNeeded: boolean }>('subscriptions')).filter(({ isNeeded }) => !isNeeded)
    const subscription = '{"id": "urn:ngsi-ld:Subscription:form", "entities": [{"type": "qoi:Quality"}]}'
    for (const [path, fields] of [
      ['deletesubscription', { subid: 'urn:ngsi-ld:Subscription:form' }],
      ['deleteallsubscriptions', {}],
    ] as const) {
      expect(await post('addsubscription', { subscription })).toBe(303)
      expect(await created()).toMatchObject([{ id: 'urn:ngsi-ld:Subscription:form' }])
      expect(await post(path, fields)).toBe(303)
      expect(await created()).toEqual([])
    }
    expect(await post('addsubscription', { subscription: '{' })).toBe(400)
    expect(await post('changeconfiguration', { section: 'x', key: 'port', value: '1' })).toBe(404)
    const change = (key: string, value: string) => post('changeconfiguration', { section: 'x', key, value })
    expect(await change('maxlogentries', '1')).toBe(303)
    expect(await result('log')).toHaveLength(1)
    expect([await change('deleteqoi', 'False'), await change('deleteqoi', 'True')]).toEqual([303, 400])
    expect([await change('enablena', 'True'), await change('enablena', '1')]).toEqual([303, 400])
    for (const setting of ['maxLogEntries', 'enableNa'])
      expect((await gateway.send('DELETE', `/quality/api/configuration/${setting}`, undefined)).status).toBe(
        200,
      )
    expect(await post('addmetadata', { type: 'pH' })).toBe(400)
  })

  it('shows environment names, and changes only what can be changed while it runs', async () => {
    const rows = () => result<{ name: string; value: string; isChanged: boolean }>('configuration')
    expect(await rows()).toContainEqual(
      expect.objectContaining({ name: 'SELVEDGE_QUALITY_WRITE_INTERVAL_MS', value: '100', isEditable: true }),
    )
    expect(await rows()).toContainEqual(expect.objectContaining({ alias: 'SE_CALLBACK', value: '' }))
    const put = (setting: string, given: unknown) =>
      gateway.send('PUT', `/quality/api/configuration/${setting}`, { value: given })
    expect((await put('labelSimilarity', 0.5)).status).toBe(200)
    const similarity = { name: 'SELVEDGE_QUALITY_LABEL_SIMILARITY', value: '0.5', isChanged: true }
    expect(await rows()).toContainEqual(expect.objectContaining(similarity))
    expect((await put('labelSimilarity', 1.1)).status).toBe(400)
    expect((await put('writeIntervalMs', 1.5)).status).toBe(400)
    expect((await put('port', 1)).status).toBe(404)
    await gateway.send('DELETE', '/quality/api/configuration/labelSimilarity', undefined)
    expect(await rows()).toContainEqual(
      expect.objectContaining({ ...similarity, value: '0.8', isChanged: false }),
    )
  })

  it('writes figures that are not known as NA if it is told to', async () => {
    await create('unknown', { label: 'no usual property', intervalMs: 3_600_000 })
    const set = (value: boolean) => gateway.send('PUT', '/quality/api/configuration/enableNa', { value })
    const plausibility = async () => {
      const answer = await gateway.get(`/ngsi-ld/v1/entities/urn:ngsi-ld:QoI:${idOf('unknown')}`)
      return answer.status === 200 ? (answer.json() as Record<string, unknown>)[`${qoi}plausibility`] : null
    }
    await observe('unknown', 20)
    await expect.poll(plausibility).toBeUndefined()
    expect((await set(true)).status).toBe(200)
    await observe('unknown', 21)
    const na = expect.objectContaining({ type: 'Property', value: 'NA' })
    await expect
      .poll(plausibility)
      .toEqual(expect.objectContaining({ [`${qoi}hasAbsoluteValue`]: na, [`${qoi}hasRatedValue`]: na }))
    expect((await set(false)).status).toBe(200)
  })

  it('uses a changed value range for the next value of a stream', async () => {
    await create('range', { label: 'noise level', intervalMs: 3_600_000 })
    const entry = { min: 0, max: 100, updateInterval: 60 }
    const put = (label: string, body: object) =>
      gateway.send('PUT', `/quality/api/properties/${encodeURIComponent(label)}`, body)
    expect((await put('noise level', entry)).status).toBe(204)
    const stream = async () => (await api(`streams/${encodeURIComponent(idOf('range'))}`)).json()
    await vi.waitFor(async () => expect(await stream()).toMatchObject({ range: { min: 0, max: 100 } }), {})
    await observe('range', 101)
    await vi.waitFor(
      async () => expect(await stream()).toMatchObject({ quality: { plausibility: { absolute: 0 } } }),
      {},
    )
    expect((await put('x', { regexp: '(' })).status).toBe(400)
    expect((await put('x', { min: 2, max: 1 })).status).toBe(400)
    expect((await put('x', {})).status).toBe(400)
    for (const label of ['noise level', 'humidity']) {
      const gone = await gateway.send(
        'DELETE',
        `/quality/api/properties/${encodeURIComponent(label)}`,
        undefined,
      )
      expect(gone.status).toBe(204)
    }
    const labels = (await result<{ label: string }>('properties')).map(({ label }) => label)
    expect(labels).not.toContain('humidity')
    expect(labels).not.toContain('noise level')
  })

  it('keeps writes of pages of other origins, and requests to other hosts, out', async () => {
    const status = async (path: string, init: RequestInit) => (await fetch(origin + path, init)).status
    const headers = { Origin: 'https://elsewhere.example', 'Content-Type': 'text/plain' }
    for (const prefix of ['/quality', '/semanticenrichment']) {
      expect(await status(`${prefix}/api/subscriptions`, { method: 'POST', headers, body: '{}' })).toBe(403)
      const path = `${prefix}/api/properties/humidity`
      expect(await status(path, { method: 'DELETE', headers })).toBe(403)
    }
    const form = { method: 'POST', headers, body: 'key=writeIntervalMs&value=1' }
    expect(await status('/semanticenrichment/changeconfiguration', form)).toBe(403)
    const other = await gateway.send('GET', '/quality/api/log', undefined, { Host: 'rebound.example' })
    expect(other.status).toBe(421)
  })

  it('lists log lines by level and number', async () => {
    const lines = () => result<{ event: string }>('log?level=info&limit=1')
    await vi.waitFor(async () => expect(await lines()).toHaveLength(1), {})
    expect(await result('log?level=error')).toEqual([])
    expect((await api('log?level=loud')).status).toBe(400)
    expect((await api('log?limit=501')).status).toBe(400)
  })
})

describePeer('chromium', 'the quality page', (path) => {
  let browser: Browser
  const tile = (name: string, metric: string) =>
    browser.page.locator(`[data-stream="${idOf(name)}"] [data-metric="${metric}"] strong`)

  beforeAll(async () => {
    // The first visit builds it, unless `npm run build` has.
    expect((await fetch(`${origin}/quality/ui`)).status).toBe(200)
    browser = await openBrowser(path, origin)
    await browser.page.goto(`${origin}/quality/ui`)
  })
  afterAll(async () => {
    await browser?.close()
  })

  it('shows a quality that falls when the sensor stops, and rises when it returns', async () => {
    await create('watched', { label: 'temperature', intervalMs: 400 })
    await observe('watched', 20)
    const completeness = async () => Number(await tile('watched', 'completeness').textContent())
    await expect.poll(completeness).toBe(0)
    await expect
      .poll(
        async () => {
          await observe('watched', 20)
          return completeness()
        },
        { interval: 200 },
      )
      .toBeGreaterThan(0)
    const chart = browser.page.locator(
      `[data-stream="${idOf('watched')}"] [data-metric="completeness"] canvas`,
    )
    await expect.poll(() => chart.count()).toBe(1)
  })

  it('shows a hostile label as text, on a phone and in the dark', async () => {
    await create('hostile', { label: hostile, intervalMs: 3_600_000 })
    const { page, strangers, complaints } = browser
    await page.setViewportSize({ width: 360, height: 740 })
    await page.emulateMedia({ colorScheme: 'dark' })
    const heading = page.locator(`[data-stream="${idOf('hostile')}"] h3`)
    await expect.poll(() => heading.textContent()).toBe(hostile)
    expect(await page.title()).toBe('Selvedge quality')
    // Nothing is wider than the screen.
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(15, 19, 23)')
    expect([strangers, complaints]).toEqual([[], []])
  })

  it('counts one value in the singular, and shows ids on a phone', async () => {
    await create('single', { label: 'single', intervalMs: 3_600_000 })
    await observe('single', 20)
    const { page } = browser
    const seen = page.locator(`[data-stream="${idOf('single')}"] .seen`)
    await expect.poll(() => seen.textContent()).toContain('1 value, ')
    await page.setViewportSize({ width: 360, height: 740 })
    await page.getByRole('link', { name: 'Subscriptions' }).click()
    const id = page.locator('tbody code').first()
    await expect.poll(async () => (await id.boundingBox())?.width).toBeGreaterThan(150)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
  })

  it('creates and deletes a subscription with its form', async () => {
    const { page, complaints } = browser
    const listed = () => result<{ id: string; isNeeded: boolean; types: string[] }>('subscriptions')
    // The analyser creates its own ones first.
    const needed = Object.keys(watched).length
    await expect.poll(async () => (await listed()).length).toBe(needed)
    await page.getByRole('link', { name: 'Subscriptions' }).click()
    await page.locator('input[name="types"]').fill('sosa:Platform, qoi:Quality')
    await page.locator('input[name="attributes"]').fill('qoi:completeness')
    await page.getByRole('button', { name: 'Create' }).click()
    const rows = page.locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(needed + 1)
    const made = (await listed()).find(({ isNeeded }) => !isNeeded)
    expect(made).toMatchObject({ types: [`${sosa}Platform`, `${qoi}Quality`], status: 'active' })
    const stored = () => gateway.get(`/ngsi-ld/v1/subscriptions/${made!.id}`)
    expect((await stored()).json()).toMatchObject({ watchedAttributes: [`${qoi}completeness`] })
    await page.getByRole('button', { name: 'Delete' }).click()
    await expect.poll(() => rows.count()).toBe(needed)
    expect((await stored()).status).toBe(404)
    expect(complaints).toEqual([])
  })

  it('saves a configuration value and a usual property', async () => {
    const { page, complaints } = browser
    await page.getByRole('link', { name: 'Configuration' }).click()
    await page.locator('input[name="writeIntervalMs"]').fill('250')
    await page.locator('form:has(input[name="writeIntervalMs"]) button').first().click()
    await expect.poll(() => result('configuration')).toContainEqual(expect.objectContaining({ value: '250' }))
    await page.getByRole('link', { name: 'Metadata' }).click()
    await page.locator('input[name="label"]').fill('Water Level')
    await page.locator('input[name="max"]').fill('12.5')
    await page.getByRole('button', { name: 'Save entry' }).click()
    const entry = { label: 'water level', max: 12.5 }
    await expect.poll(() => result('properties')).toContainEqual(entry)
    await page.getByRole('link', { name: 'Log' }).click()
    const lines = page.locator('tbody')
    await expect.poll(() => lines.textContent()).toContain('quality.resumed')
    await page.locator('select').selectOption('info')
    await expect.poll(() => lines.textContent()).not.toContain('quality.resumed')
    expect(await lines.textContent()).toContain('quality.read')
    expect(complaints).toEqual([])
  })
})

describePeer('chromium', 'the quality page of a gateway with a token', (path) => {
  const token = 'a-token-of-thirty-two-characters'

  it('opens without the token, and shows data with it', async () => {
    const data = mkdtempSync(join(tmpdir(), 'selvedge-quality-token-'))
    writeFileSync(join(data, 'token'), `${token}\n`, { mode: 0o600 })
    const guarded = await startGatewayInside(data, {
      SELVEDGE_HOST: '0.0.0.0',
      SELVEDGE_HTTP_TOKEN_FILE: join(data, 'token'),
      SELVEDGE_QUALITY_ENABLED: 'true',
    })
    const url = `http://127.0.0.1:${guarded.httpPort}`
    const status = async (at: string) => (await fetch(`${url}/quality${at}`)).status
    await vi.waitFor(async () => expect(await status('/ui')).toBe(200), {})
    for (const at of [
      '/status',
      '/api/streams',
      '/api/log',
      '/api/configuration',
      '/semanticenrichment/api/log',
    ])
      expect([at, await status(at)]).toEqual([at, 401])
    expect((await fetch(`${url}/semanticenrichment/ui`)).status).toBe(200)
    for (const at of ['api/log', 'showsubscriptions', ''])
      expect([at, (await fetch(`${url}/semanticenrichment/${at}`)).status]).toEqual([at, 401])
    const browser = await openBrowser(path, url)
    await browser.page.goto(`${url}/quality/ui`)
    await browser.page.locator('input[type="password"]').fill(token)
    await browser.page.getByRole('button', { name: 'Use token' }).click()
    await expect.poll(() => browser.page.locator('.state').textContent()).toMatch(/^\d+ streams/)
    await browser.close()
    await guarded.close()
    rmSync(data, { recursive: true, force: true })
  })
})
