/** Tenants share the writer thread and nothing else. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { GatewayError } from '#base/register/errors.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'
import { setLimit } from '#test/kit/ceilings.ts'

const open = brokerOfFile()

const room = (value: unknown): Entity =>
  ({ id: 'urn:x:room', type: 'Room', t: { type: 'Property', value } }) as Entity
const all = { limit: 10, offset: 0, count: true }

it('have their own entities, subscriptions, histories and numbers', async () => {
  const other = await open.tenants.broker.tenantForCreate('other')
  await open.broker.subscriptions.create({
    id: 'urn:x:s',
    notificationTrigger: ['attributeCreated'],
    notification: { endpoint: { uri: 'http://127.0.0.1:9/' } },
    context: [],
  })
  await other.create(room('other'), 'http')
  expect(open.announced).toEqual([])
  expect(open.broker.queryAtOnce(all).count).toBe(0)
  await open.broker.create(room('main'), 'http')
  expect(open.announced).toHaveLength(1)
  expect(other.subscriptions.list({ limit: 10, offset: 0 }).count).toBe(0)
  expect(other.retrieve('urn:x:room')!.entity()).toEqual(room('other'))
  await open.broker.remove('urn:x:room', 'http')
  expect(other.queryAtOnce(all).count).toBe(1)
})

it('are found again after a restart, and created only by a create', async () => {
  const other = await open.tenants.broker.tenantForCreate('other')
  await other.create(room(1), 'http')
  expect(open.tenants.broker.tenant('third')).toBeUndefined()
  await open.restart()
  expect(open.tenants.broker.tenant('other')!.retrieve('urn:x:room')!.entity()).toEqual(room(1))
  expect(open.tenants.broker.tenant('third')).toBeUndefined()
  expect(open.tenants.all().map(({ name }) => name)).toEqual(['', 'other'])
})

it('are opened once, however many requests arrive at the same time', async () => {
  const [a, b] = await Promise.all([1, 2].map(async () => open.tenants.broker.tenantForCreate('other')))
  expect(a).toBe(b)
  expect(open.tenants.all()).toHaveLength(2)
})

it('do not affect each other', async () => {
  const other = await open.tenants.broker.tenantForCreate('other')
  open.refuseNextGroup(new GatewayError('store.full', 'full'))
  const answers = await Promise.allSettled([
    open.broker.create(room(1), 'http'),
    other.create(room(2), 'http'),
  ])
  expect(answers.filter(({ status }) => status === 'rejected')).toHaveLength(1)
  const tenants = open.tenants.all().map((tenant) => tenant.door.status().full)
  expect(tenants.filter(Boolean)).toHaveLength(1)
})

it('have names that are safe in a path, and a limit', async () => {
  for (const name of ['../up', 'a/b', '', '.', 'a b', 'x'.repeat(65), 'ä']) {
    if (name === '') continue
    const made = async (): Promise<unknown> => open.tenants.broker.tenantForCreate(name)
    await expect(made()).rejects.toThrow('NGSILD-Tenant')
  }
  expect(await open.tenants.broker.tenantForCreate('')).toBe(open.broker)
  setLimit('tenantsMax', 2)
  await open.tenants.broker.tenantForCreate('one')
  await expect(open.tenants.broker.tenantForCreate('two')).rejects.toThrow('maximum of 2 tenants')
  expect(existsSync(join(open.folder, 'tenants', 'two.db'))).toBe(false)
})

it('that cannot be opened are refused without effect on the others', async () => {
  await open.tenants.broker.tenantForCreate('one')
  writeFileSync(join(open.folder, 'tenants', 'bad.db'), 'no database '.repeat(1000))
  await expect(open.tenants.broker.tenantForCreate('bad')).rejects.toThrow('bad.db')
  await open.broker.create(room(1), 'http')
  expect(open.broker.queryAtOnce(all).count).toBe(1)
})

it('leave foreign files alone', async () => {
  await open.tenants.broker.tenantForCreate('one')
  const foreign = join(open.folder, 'tenants', 'notes.txt')
  writeFileSync(foreign, 'mine')
  await open.restart()
  expect(existsSync(foreign)).toBe(true)
  expect(open.tenants.all()).toHaveLength(2)
})
