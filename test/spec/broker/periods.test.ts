/**
 * Subscriptions with timeInterval (GS CIM 009, 5.2.12 and 5.8.6): each period sends all matches, by a
 * schedule that survives a restart and does not depend on the wall clock.
 */
import { expect, it, vi } from 'vitest'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import { renderNotification } from '#broker/subscriptions/notification.ts'
import { createRenderedItems } from '#broker/subscriptions/rendered-items.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { defaultTriggers, type Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'

const contexts = { core: coreContext, resolveAtOnce: () => coreContext } as unknown as Contexts

const open = brokerOfFile({ synchronous: 'NORMAL' })

const room = (n: number, t: number) => ({ id: `urn:x:${n}`, type: 'Room', t: { type: 'Property', value: t } })
const subscribe = (members: Partial<Subscription> = {}): Promise<void> =>
  open.broker.subscriptions.create({
    id: 'urn:x:s',
    entities: [{ types: { kind: 'type', name: 'Room' } }],
    notificationTrigger: defaultTriggers,
    timeInterval: 0.05,
    notification: { endpoint: { uri: 'http://127.0.0.1:9/' }, format: 'simplified' },
    context: [],
    ...members,
  })
const reported = (index: number): unknown => {
  const ports = {
    tenant: open.inside,
    contexts,
    items: createRenderedItems(),
    clock: open.clock,
    newId: () => 'n',
  }
  const rendered = renderNotification(ports, [open.announced[index]!])
  return rendered === undefined ? undefined : (JSON.parse(rendered.body) as { data: unknown }).data
}

it('sends all matching entities in one notification, whether or not something changed', async () => {
  for (const [n, t] of [5, 25, 30].entries()) await open.broker.create(room(n, t), 'http')
  // Long enough that no third period supersedes the second while it is checked.
  await subscribe({ q: parseQuery('t>20', (term) => term), timeInterval: 0.4 })
  await vi.waitFor(() => expect(open.announced.length).toBeGreaterThan(1))
  expect(reported(open.announced.length - 1)).toEqual([25, 30].map((t, n) => ({ ...room(n + 1, t), t })))
  expect(reported(0)).toBeUndefined()
})

it('sends nothing if nothing matches, while paused, or because something changes', async () => {
  await subscribe({ timeInterval: 3600 })
  await open.broker.create(room(1, 1), 'http')
  await open.broker.subscriptions.create({
    ...open.broker.subscriptions.get('urn:x:s')!.subscription,
    id: 'urn:x:none',
    timeInterval: 0.02,
    entities: [{ types: { kind: 'type', name: 'Car' } }],
  })
  await open.broker.subscriptions.patch('urn:x:s', (before) => ({
    ...before,
    timeInterval: 0.02,
    isActive: false,
  }))
  await new Promise((resolve) => setTimeout(resolve, 150))
  expect(open.announced).toEqual([])
  await open.broker.subscriptions.patch('urn:x:s', ({ isActive: _, ...before }) => before)
  await vi.waitFor(() => expect(open.announced.length).toBeGreaterThan(0))
})

it('continues its schedule after a restart, also if the wall clock was set', async () => {
  await open.broker.create(room(1, 1), 'http')
  await subscribe({ timeInterval: 0.2 })
  await vi.waitFor(() => expect(open.announced.length).toBe(1))
  await open.broker.subscriptions.patch('urn:x:s', (before) => ({ ...before, timeInterval: 100 }))
  await open.restart({ meanwhile: () => open.clock.pass(99_900) })
  await vi.waitFor(() => expect(open.announced.length).toBe(1))
  open.clock.jump(-1e9)
  await open.broker.subscriptions.patch('urn:x:s', (before) => ({ ...before, timeInterval: 0.05 }))
  await vi.waitFor(() => expect(open.announced.length).toBeGreaterThan(2))
})
