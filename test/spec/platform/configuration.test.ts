/** The platform's variables that map to a setting of an implemented component. */
import { afterAll, beforeAll, expect } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { prove } from './prove.ts'

let gateway: GatewayProcess
let search: HttpClient

beforeAll(async () => {
  gateway = await startGatewayProcess({
    env: { VERSION: 'a1b2c3', PLATFORM_ORCHESTRATOR_URL: 'http://127.0.0.1:9' },
  })
  search = httpClient(`${gateway.httpUrl}/search`)
})
afterAll(() => gateway.stop())

prove('Configuration', {
  async version() {
    expect((await search.get('/version')).text).toContain('a1b2c3')
  },

  async orchestratorUrl() {
    const answer = await search.send('POST', '/graphql', { query: '{ sensors { id } }' })
    expect(answer.text).toContain('errors')
  },
})
