/**
 * Rendered items of notifications are cached by change and form, up to their limit.
 */
import { afterEach, expect, it, vi } from 'vitest'
import { coreContext } from '#ngsi-ld/context/context.ts'
import type { NotificationParameters, Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createRenderedItems } from './rendered-items.ts'

afterEach(restoreLimits)

const subscription = (id: string, notification: Partial<NotificationParameters> = {}): Subscription => ({
  id,
  notificationTrigger: ['entityCreated'],
  notification: { endpoint: { uri: `http://127.0.0.1:9/${id}` }, ...notification },
  context: [],
})

it('renders a change once for subscriptions that differ in id and address', () => {
  const items = createRenderedItems()
  const render = vi.fn(() => ['{"id":"urn:x"}'])
  for (const id of ['urn:a', 'urn:b']) {
    const form = items.formOf(subscription(id), coreContext)!
    expect(items.of(form, 'change', render)).toEqual(['{"id":"urn:x"}'])
  }
  expect(render).toHaveBeenCalledTimes(1)
  const other = items.formOf(subscription('urn:c', { format: 'concise' }), coreContext)!
  items.of(other, 'change', render)
  items.of(other, 'another change', render)
  expect(render).toHaveBeenCalledTimes(3)
})

it('has a form for each context, and none if entities are joined', () => {
  const items = createRenderedItems()
  const one = subscription('urn:a')
  const form = items.formOf(one, coreContext)
  expect(items.formOf(one, coreContext)).toBe(form)
  expect(items.formOf(one, { ...coreContext })).not.toBe(form)
  expect(items.formOf(subscription('urn:a', { join: 'flat' }), coreContext)).toBeUndefined()
})

it('discards the oldest changes beyond its limit', () => {
  setLimit('notificationItemsBytes', 30)
  const items = createRenderedItems()
  const render = vi.fn(() => ['1234567890'])
  for (const change of ['a', 'b', 'c', 'b', 'c', 'a']) items.of('form', change, render)
  // The second `b` and `c` are cached; the last `a` is not.
  expect(render).toHaveBeenCalledTimes(4)
  const long = 'form'.repeat(10)
  for (const form of [long, long]) items.of(form, 'd', render)
  expect(render).toHaveBeenCalledTimes(6)
  // Items above the limit displace no others.
  items.of('form', 'a', render)
  expect(render).toHaveBeenCalledTimes(6)
})
