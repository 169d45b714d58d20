/** The limits in the specification for implemented components. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { prove } from './prove.ts'
import { clientOf, sensor, sensorType } from './sensor.ts'

let gateway: GatewayProcess

beforeAll(async () => {
  gateway = await startGatewayProcess({ config: { ranking: { backend: 'mdr' } } })
  await clientOf(httpClient(gateway.httpUrl)).create(sensor('urn:ngsi-ld:Sensor:1'))
})
afterAll(() => gateway.stop())

prove('Limits', {
  async weights() {
    const client = httpClient(`${gateway.httpUrl}/ranking`)
    const type = encodeURIComponent(sensorType)
    const warningOf = async (weights: string): Promise<string | undefined> =>
      (await client.get(`/ngsi-ld/v1/entities?type=${type}&weights=${weights}`)).headers['ngsild-warning']
    expect(await warningOf('qoi:min:0.4,qoi:max:0.6')).toBeUndefined()
    expect(await warningOf('qoi:min:0.4,qoi:max:0.7')).toContain('the weights add up to 1.1')
  },

  async shards() {
    const files = readdirSync(join(gateway.dataFolder, 'plugins')).filter((name) =>
      name.startsWith('indexing'),
    )
    expect(files.filter((name) => name.endsWith('.db'))).toEqual(['indexing.db'])
  },
})
