/**
 * A replacement of an entity, or of its types or scopes, is one at the centre too: live, after an outage, and
 * by reconciliation.
 */
import { afterEach, expect, it, vi } from 'vitest'
import { restoreLimits } from '#test/kit/ceilings.ts'
import { heldOf, observedAt, property, uplinkedPair } from '#test/kit/uplinked-pair.ts'

const pair = uplinkedPair()
afterEach(restoreLimits)

const entities = '/ngsi-ld/v1/entities'
const operations = '/ngsi-ld/v1/entityOperations'
const id = 'urn:thing:1'
const create = () =>
  pair.send('POST', entities, {
    id,
    type: ['Ta', 'Tc'],
    scope: '/floor/1',
    level: observedAt(1, 1),
    name: property('a', { unitCode: 'C62' }),
    old: property('o'),
  })
const replacement = { id, type: 'Tb', name: property('b'), level: observedAt(2, 2) }

it('replaces types, scopes and attributes live', async () => {
  await pair.connect()
  await create()
  await pair.isSame(id)
  await pair.send('PUT', `${entities}/${id}`, replacement)
  await pair.isSame(id)
  await pair.send('POST', `${operations}/upsert`, [{ ...replacement, type: 'Td', scope: ['/x', '/y'] }])
  await pair.isSame(id)
  expect(await heldOf(pair.centre, id)).toMatchObject({ entity: { type: ['Td'], scope: ['/x', '/y'] } })
})

it('replaces them after an outage', async () => {
  await pair.connect()
  await create()
  await pair.isSame(id)
  await pair.duringCut(() => pair.send('PUT', `${entities}/${id}`, replacement))
  await pair.isSame(id)
})

it('removes the scope that an entity lost in an outage, also if it was re-created', async () => {
  await pair.connect()
  await create()
  await pair.send('POST', entities, { id: 'urn:thing:2', type: 'Ta', scope: '/floor/2', name: property('n') })
  await pair.isSame('urn:thing:2')
  await pair.duringCut(async () => {
    await pair.send('DELETE', `${entities}/${id}/attrs/scope`)
    await pair.send('DELETE', `${entities}/urn:thing:2`)
    await pair.send('POST', entities, { id: 'urn:thing:2', type: 'Ta', other: property('m') })
  })
  await pair.isSame(id)
  await pair.isSame('urn:thing:2')
})

it('reconciles types, scopes and every member of an attribute', async () => {
  await pair.connect()
  await create()
  await pair.isSame(id)
  const before = await heldOf(pair.centre, id)
  // Data that passed the site is not foreign.
  const identity = (await pair.site.get('/ngsi-ld/v1/info/sourceIdentity')).json() as {
    contextSourceAlias: string
  }
  const answer = await pair.centre.send(
    'PUT',
    `${entities}/${id}`,
    {
      id,
      type: ['Ta', 'Tx'],
      level: observedAt(1, 1),
      old: property('o'),
      name: property('a', { unitCode: 'C62', observedBy: property(1) }),
    },
    { via: `HTTP/1.1 ${identity.contextSourceAlias}` },
  )
  expect(answer.status).toBe(204)
  await pair.send('POST', '/selvedge/v1/uplinks/urn:up/reconcile')
  await vi.waitFor(async () => {
    const { reconcile } = (await pair.site.get('/selvedge/v1/uplinks/urn:up')).json() as {
      reconcile: object
    }
    expect(reconcile).toMatchObject({ phase: 'done', different: 1 })
  })
  expect(((await heldOf(pair.centre, id)) as { entity: object }).entity).toEqual(
    (before as { entity: object }).entity,
  )
})

it('reconciles away attributes that an entity lost before it was re-created', async () => {
  await pair.connect()
  await create()
  await pair.isSame(id)
  const identity = (await pair.site.get('/ngsi-ld/v1/info/sourceIdentity')).json() as {
    contextSourceAlias: string
  }
  await pair.send('PUT', `${entities}/${id}`, replacement)
  await pair.send('DELETE', `${entities}/${id}`)
  await pair.send('POST', entities, replacement)
  await pair.isSame(id)
  // As after a restore from an older copy.
  const back = { old: property('o') }
  const answer = await pair.centre.send('POST', `${entities}/${id}/attrs`, back, {
    via: `HTTP/1.1 ${identity.contextSourceAlias}`,
  })
  expect(answer.status).toBe(204)
  await pair.send('POST', '/selvedge/v1/uplinks/urn:up/reconcile')
  await vi.waitFor(async () =>
    expect((await pair.centre.get(`${entities}/${id}`)).json()).not.toHaveProperty('old'),
  )
})
