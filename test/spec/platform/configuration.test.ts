/** The platform's variables that map to a setting of an implemented component. */
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { noPlugins } from '#test/kit/gateway-inside.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { freePort } from '#test/kit/ports.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { prove } from './prove.ts'

let gateway: GatewayProcess
let search: HttpClient
/** The MDR that the configuration assigns to the quality analyser. */
let mdr: GatewayProcess
let sePort: number

beforeAll(async () => {
  mdr = await startGatewayProcess({ env: { ...noPlugins, SELVEDGE_MQTT_PORT: 'off' } })
  sePort = await freePort()
  gateway = await startGatewayProcess({
    env: {
      VERSION: 'a1b2c3',
      PLATFORM_ORCHESTRATOR_URL: 'http://127.0.0.1:9',
      SELVEDGE_QUALITY_ENABLED: 'true',
      NGSI_ADDRESS: mdr.httpUrl,
      SE_HOST: '127.0.0.2',
      SE_PORT: String(sePort),
      SE_CALLBACK: `http://127.0.0.2:${sePort}/semanticenrichment/callback`,
    },
  })
  search = httpClient(`${gateway.httpUrl}/search`)
})
afterAll(async () => {
  await gateway?.stop()
  await mdr?.stop()
})

/** Endpoints of the subscriptions at that MDR. */
async function endpoints(): Promise<string[]> {
  const made = (await httpClient(mdr.httpUrl).get('/ngsi-ld/v1/subscriptions')).json()
  const all = made as { notification: { endpoint: { uri: string } } }[]
  return all.map(({ notification }) => notification.endpoint.uri)
}

prove('Configuration', {
  async version() {
    expect((await search.get('/version')).text).toContain('a1b2c3')
  },

  async orchestratorUrl() {
    const answer = await search.send('POST', '/graphql', { query: '{ sensors { id } }' })
    expect(answer.text).toContain('errors')
  },

  async ngsiAddress() {
    await vi.waitFor(async () => expect(await endpoints()).toHaveLength(6))
  },

  async seHost() {
    expect((await httpClient(`http://127.0.0.2:${sePort}`).get('/status')).status).toBe(200)
    await expect(fetch(`http://127.0.0.1:${sePort}/status`)).rejects.toThrow('fetch failed')
  },

  async sePort() {
    const { status, text } = await httpClient(`http://127.0.0.2:${sePort}`).get('/status')
    expect([status, text]).toEqual([200, expect.stringContaining(mdr.httpUrl)])
  },

  async seCallback() {
    for (const uri of await endpoints())
      expect(uri.startsWith(`http://127.0.0.2:${sePort}/semanticenrichment/callback/`)).toBe(true)
  },
})
