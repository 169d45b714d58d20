/** The errors in the specification, each with a body that names the problem. */
import { afterAll, beforeAll, expect } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { prove } from './prove.ts'
import { attributesOf, clientOf, sensor } from './sensor.ts'

const etsi = 'https://uri.etsi.org/ngsi-ld/errors/'
const id = 'urn:ngsi-ld:Sensor:errors'
const nobody = 'urn:ngsi-ld:Sensor:nobody'

let gateway: GatewayProcess
let mdr: ReturnType<typeof clientOf>

beforeAll(async () => {
  gateway = await startGatewayProcess()
  mdr = clientOf(httpClient(gateway.httpUrl))
})
afterAll(() => gateway.stop())

prove('Errors', {
  async notNgsi() {
    const { '@context': _context, ...bare } = sensor(id)
    const wrong: unknown[] = [
      '{',
      'null',
      [],
      { ...sensor(id), id: 'no URI' },
      { ...sensor(id), type: 7 },
      { ...sensor(id), 'qoi:min': { type: 'Property' } },
      { ...sensor(id), 'sosa:observes': { type: 'Relationship', object: 'no URI' } },
      // JSON-LD has its context in the body.
      bare,
    ]
    for (const body of wrong) {
      const answer = await mdr.create(body)
      expect([body, answer.status]).toEqual([body, 400])
      expect(answer.json()).toMatchObject({ type: expect.stringContaining(etsi), detail: expect.any(String) })
    }
    expect((await mdr.retrieve(id)).status).toBe(404)
  },

  async exists() {
    expect((await mdr.create(sensor(id))).status).toBe(201)
    const again = await mdr.create({ ...sensor(id), 'qoi:min': { type: 'Property', value: 0 } })
    expect(again.status).toBe(409)
    expect(again.json()).toMatchObject({ type: `${etsi}AlreadyExists`, detail: expect.stringContaining(id) })
  },

  async internal() {
    const failing = await startGatewayProcess({
      env: { SELVEDGE_FAILPOINTS: 'http:internal=throw(1)' },
      // The index also queries the broker and would fail first.
      config: { indexing: { enabled: false }, ranking: { enabled: false } },
    })
    try {
      const client = clientOf(httpClient(failing.httpUrl))
      const answer = await client.create(sensor(id))
      expect(answer.status).toBe(500)
      const problem = answer.json() as { type: string; detail: string; instance: string }
      expect(problem.type).toBe(`${etsi}InternalError`)
      const line = failing.logLines().find(({ event }) => event === 'gateway.internal-error')
      expect(problem.instance).toBe(`urn:uuid:${line?.['id']}`)
      expect(problem.detail).not.toContain('failpoint')
      expect((await client.create(sensor(id))).status).toBe(201)
    } finally {
      await failing.stop()
    }
  },

  async missing() {
    const answers = [
      await mdr.retrieve(nobody),
      await mdr.update(nobody, attributesOf(sensor(nobody))),
      await mdr.remove(nobody),
    ]
    for (const answer of answers) {
      expect(answer.status).toBe(404)
      expect(answer.json()).toMatchObject({
        type: `${etsi}ResourceNotFound`,
        detail: expect.stringContaining(nobody),
      })
    }
  },
})
