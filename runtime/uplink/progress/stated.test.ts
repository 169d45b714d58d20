/**
 * Statements beside a put depend on the kind of centre: a Selvedge gets types and modification times, another
 * broker gets neither, and a centre of unknown kind gets both.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createPeer } from '#federation/peer.ts'
import { createCentralBroker } from '#uplink/centre/central-broker.ts'
import type { Step } from '#uplink/steps/step-plan.ts'

let server: Server
let info: readonly [status: number, body: string]
let puts: { readonly states: unknown; readonly body: unknown }[]
beforeEach(async () => {
  puts = []
  server = createServer((incoming, response) => {
    let text = ''
    incoming.on('data', (chunk: Buffer) => (text += chunk.toString()))
    incoming.on('end', () => {
      if (incoming.url?.startsWith('/selvedge/') === true) return response.writeHead(info[0]).end(info[1])
      if (incoming.method === 'GET') return response.writeHead(200).end('[]')
      puts.push({ states: incoming.headers['selvedge-states'], body: JSON.parse(text) as unknown })
      return response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

const modifiedAt = '2026-01-01T00:00:00Z'
const step = (id: string, statesTypes: boolean): Step => ({
  kind: 'put',
  entity: { id, type: 'A', ...(statesTypes ? { statesTypes } : {}) },
  attributes: new Map([['v', [{ type: 'Property', value: 1, modifiedAt }]]]),
})
const sent = (id: string, withTime: boolean) => [
  { id, type: 'A', v: { type: 'Property', value: 1, ...(withTime ? { modifiedAt } : {}) } },
]
const typed = JSON.stringify({ type: 'https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound' })

it.each([
  ['another gateway', [200, '{"name":"selvedge"}'], true],
  ['an ordinary broker', [404, typed], false],
  ['one of unknown kind', [503, ''], true],
] as const)('to %s', async (_, answer, isStated) => {
  info = answer
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ngsi-ld/v1`
  const clock = { now: () => 0, monotonic: () => 0 }
  const centre = createCentralBroker(
    createPeer({ allowsLoopback: true }),
    { base, headers: {}, alias: 'a' },
    clock,
  )
  const steps = [step('urn:a', true), step('urn:b', false)]
  expect(await centre.send({ kind: 'put', steps })).toMatchObject({ kind: 'done', refused: [] })
  const together = { states: undefined, body: [...sent('urn:a', false), ...sent('urn:b', false)] }
  expect(puts).toEqual(
    isStated
      ? [
          { states: 'times', body: sent('urn:b', true) },
          { states: 'times,types', body: sent('urn:a', true) },
        ]
      : [together],
  )
})
