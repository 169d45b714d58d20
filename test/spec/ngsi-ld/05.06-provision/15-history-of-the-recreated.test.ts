/**
 * An entity that is deleted and re-created has one history, which contains the same observation once [NGSI-LD
 * 4.5.6].
 */
import { expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const temporal = '/ngsi-ld/v1/temporal/entities'
const entities = '/ngsi-ld/v1/entities'
const at = (second: number): string => `2026-01-01T00:00:0${second}Z`

interface Instance {
  readonly value: unknown
  readonly instanceId: string
  readonly deletedAt?: string
}
async function instancesOf(id: string, query = ''): Promise<readonly Instance[]> {
  const answer = await gateway.get(`${temporal}/${id}${query}`)
  expect([answer.status, answer.text]).toEqual([200, expect.anything()])
  const { o = [] } = answer.json() as { o?: Instance[] }
  return o.filter(({ deletedAt }) => deletedAt === undefined)
}

async function upsert(id: string, second: number): Promise<void> {
  const o = property(5, { observedAt: at(second) })
  const answer = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/upsert', [{ id, type: 'T', o }])
  expect([201, 204]).toContain(answer.status)
}

it('shall contain an observation once if it was written before and after the deletion', async () => {
  const id = freshId()
  for (const second of [5, 5]) {
    await upsert(id, second)
    expect((await gateway.ask('DELETE', `${entities}/${id}`)).status).toBe(204)
  }
  await upsert(id, 5)
  for (const query of ['', '?lastN=3', `?timerel=after&timeAt=${at(0)}`])
    expect((await instancesOf(id, query)).map(({ value }) => value)).toEqual([5])
  const count = await gateway.get(`${temporal}/${id}?options=aggregatedValues&aggrMethods=totalCount`)
  expect(count.json()).toMatchObject({ o: { totalCount: [[1, at(5), at(5)]] } })
  await upsert(id, 6)
  const [first, ...others] = await instancesOf(id)
  expect(others).toHaveLength(1)
  expect((await gateway.ask('DELETE', `${temporal}/${id}/attrs/o/${first!.instanceId}`)).status).toBe(204)
  expect(await instancesOf(id)).toEqual(others)
})
