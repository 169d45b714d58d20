/**
 * Entities whose ids contain list separators or characters with a meaning in patterns or URLs: they are sent,
 * reconciled and deleted like others (RFC 3986, 2.2 allows these in a URI; GS CIM 009, 5.7.2 separates ids by
 * commas).
 */
import { expect, it, vi } from 'vitest'
import { siteAndCentre } from '#test/kit/site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const up = '/selvedge/v1/uplinks/urn:up'
const withinMs = { interval: 100 }
const ids = ['a,b', '50%25', 'x%2Cy', '(a+b)*$,', 'c.d&e=1', "f;g'h!"].map((end) => `urn:tank:${end}`)

const pair = siteAndCentre()

const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await pair.site.send(method, path, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
const there = async (): Promise<readonly string[]> => {
  const all: readonly { id: string }[] = (await pair.centre.get(`${v1}/entities?type=Tank`)).json()
  return all.map(({ id }) => id).toSorted()
}
const report = async (): Promise<Record<string, unknown>> => {
  await send('POST', `${up}/reconcile`)
  return vi.waitFor(async () => {
    const { reconcile }: { reconcile?: Record<string, unknown> } = (await pair.site.get(up)).json()
    expect(reconcile).toMatchObject({ phase: 'done' })
    return reconcile!
  }, withinMs)
}

it('entities with unusual ids are sent, reconciled and deleted', async () => {
  for (const id of ids) {
    const level = { type: 'Property', value: 1, observedAt: '2026-01-01T00:00:00Z' }
    await send('POST', `${v1}/entities`, { id, type: 'Tank', level })
  }
  await send('POST', `${v1}/subscriptions`, {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'Tank' }],
    notification: {
      endpoint: {
        uri: `http://127.0.0.1:${pair.centre.httpPort}${v1}`,
        notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
      },
    },
  })
  await vi.waitFor(async () => expect(await there()).toEqual(ids.toSorted()), withinMs)
  const same = { missing: 0, different: 0, surplus: 0, days: 0 }
  expect(await report()).toMatchObject(same)

  // Later writes at the centre are recognized, and kept.
  for (const id of ids) {
    const name = { name: { type: 'Property', value: 'of the centre' } }
    await pair.centre.send('POST', `${v1}/entities/${encodeURIComponent(id)}/attrs`, name)
    await send('POST', `${v1}/entities/${encodeURIComponent(id)}/attrs`, {
      size: { type: 'Property', value: 1 },
    })
  }
  expect(await report()).toMatchObject({ missing: 0 })
  for (const id of ids) {
    const one = await pair.centre.get(`${v1}/entities/${encodeURIComponent(id)}?options=keyValues`)
    expect(one.json()).toMatchObject({ name: 'of the centre', size: 1 })
    await pair.centre.send('DELETE', `${v1}/entities/${encodeURIComponent(id)}/attrs/name`, undefined)
  }
  for (const id of ids) await send('DELETE', `${v1}/entities/${encodeURIComponent(id)}`)
  await vi.waitFor(async () => expect(await there()).toEqual([]), withinMs)
})
