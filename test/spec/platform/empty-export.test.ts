/** `selvedge export` explains an empty result. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, runSelvedge, startGatewayProcess } from '#test/kit/process.ts'

let gateway: GatewayProcess
beforeAll(async () => {
  gateway = await startGatewayProcess()
})
afterAll(() => gateway.stop())

const exported = async (...args: string[]): Promise<unknown> => {
  const { code, stdout, stderr } = await runSelvedge(['export', '--url', gateway.httpUrl, ...args], {
    env: { SELVEDGE_DATA: gateway.dataFolder },
  })
  return [code, stdout, stderr]
}

it('distinguishes an empty gateway, no match, and a type with another IRI', async () => {
  expect(await exported()).toEqual([
    0,
    '',
    '0 entities exported: this gateway has no entities in the default tenant\n',
  ])
  const house = { id: 'urn:h:1', type: 'https://example.org/House' }
  expect((await httpClient(gateway.httpUrl).send('POST', '/ngsi-ld/v1/entities', house)).status).toBe(201)
  expect(await exported('--type', 'Castle', '--q', 'age>9')).toEqual([
    0,
    '',
    '0 entities exported: no entity in the default tenant matches --type Castle and --q age>9\n',
  ])
  expect(await exported('--type', 'House')).toEqual([
    0,
    '',
    expect.stringMatching(
      /^0 entities exported: no entity of type House found; type https:\/\/example\.org\/House exists/,
    ),
  ])
})
