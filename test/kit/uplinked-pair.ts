/**
 * A site with an uplink to a centre, both whole gateways: writes at the site, cuts of the way, and the comparison of what both
 * hold: types, scopes, attributes, and every instance of every history.
 */
import { expect, vi } from 'vitest'
import { setLimit } from './ceilings.ts'
import type { GatewayInside } from './gateway-inside.ts'
import { type SiteAndCentre, siteAndCentre } from './site-and-centre.ts'

const v1 = '/ngsi-ld/v1'
const uplinkPath = '/selvedge/v1/uplinks/urn:up'
const withinMs = { interval: 50 }

export interface UplinkedPair extends SiteAndCentre {
  /** Writes at the site. */
  send(method: string, path: string, body?: unknown): Promise<void>
  /** Begins the uplink; `base` is the centre's address where something stands before it. */
  connect(more?: object, base?: string): Promise<void>
  /** Does something while nothing is sent. Afterwards the uplink tells entities as they are, and then what happened. */
  duringCut(work: () => Promise<void>): Promise<void>
  /** Settles when the centre holds the entity and its history as the site does, or none where the site has none. */
  isSame(id: string): Promise<void>
}

export const property = (value: unknown, more: object = {}): object => ({ type: 'Property', value, ...more })
export const observedAt = (value: unknown, second: number): object =>
  property(value, { observedAt: `2026-01-01T00:00:${String(second).padStart(2, '0')}Z` })

export function uplinkedPair(): UplinkedPair {
  const pair = siteAndCentre()
  let cuts = 0
  const send = async (method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await pair.site.send(method, path, body)
    if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
  }
  return {
    get site() {
      return pair.site
    },
    get centre() {
      return pair.centre
    },
    send,
    connect: async (more = {}, base = `http://127.0.0.1:${pair.centre.httpPort}`) => {
      await send('POST', `${v1}/subscriptions`, {
        id: 'urn:up',
        type: 'Subscription',
        entities: [{ type: '*' }],
        notification: {
          endpoint: { uri: `${base}${v1}`, notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] },
        },
        ...more,
      })
      await isLive(pair.site)
    },
    async duringCut(work) {
      await send('POST', `${uplinkPath}/pause`)
      // Rows of two milliseconds are older than it then goes through.
      setLimit('uplinkBehindMs', 0)
      await work()
      const bumped = `urn:bump:${++cuts}`
      await bump(send, bumped)
      await send('POST', `${uplinkPath}/resume`)
      await vi.waitFor(async () => {
        expect((await pair.centre.get(`${v1}/entities/${bumped}`)).status).toBe(200)
      }, withinMs)
      setLimit('uplinkBehindMs', 60_000)
      await isLive(pair.site)
    },
    isSame: (id) =>
      vi.waitFor(
        async () => expect(await heldOf(pair.centre, id)).toEqual(await heldOf(pair.site, id)),
        withinMs,
      ),
  }
}

/** Changes something in two milliseconds. */
async function bump(send: UplinkedPair['send'], id: string): Promise<void> {
  await send('POST', `${v1}/entities`, { id, type: 'Bump', n: property(0) })
  const from = Date.now()
  for (let n = 1; Date.now() < from + 2; n++)
    await send('PATCH', `${v1}/entities/${id}/attrs`, { n: property(n) })
}

const isLive = (site: GatewayInside): Promise<void> =>
  vi.waitFor(
    async () => expect((await site.get(uplinkPath)).json()).toMatchObject({ state: 'live' }),
    withinMs,
  )

/** An entity and all instances of its history, observed and not, as a gateway holds them. */
export async function heldOf(gateway: GatewayInside, id: string): Promise<object> {
  const [entity, observed, written] = await Promise.all([
    gateway.get(`${v1}/entities/${id}`),
    gateway.get(`${v1}/temporal/entities/${id}`),
    gateway.get(`${v1}/temporal/entities/${id}?timeproperty=modifiedAt&options=sysAttrs`),
  ])
  return {
    entity: entity.status === 200 ? withTypes(entity.json()) : undefined,
    observed: observed.status === 200 ? instancesIn(observed.json(), 'observedAt') : {},
    written: written.status === 200 ? instancesIn(written.json(), 'modifiedAt') : {},
  }
}

const withTypes = (entity: { type: string | string[] }): object => ({
  ...entity,
  type: [entity.type].flat().toSorted(),
})

type Instance = Readonly<Record<string, unknown>>

/** What has a time of observation, with it; or what has none, with the time of its writing. */
function instancesIn(history: Record<string, unknown>, time: 'observedAt' | 'modifiedAt'): object {
  const names = Object.keys(history).filter(
    (name) => !['id', 'type', 'scope', 'createdAt', 'modifiedAt'].includes(name),
  )
  return Object.fromEntries(
    names.flatMap((name) => {
      const all = [history[name]].flat() as Instance[]
      // What went at the site goes at the centre when it is told, and in a cut not each time.
      const some = all.filter(
        (one) => one['deletedAt'] === undefined && (time === 'observedAt' || one['observedAt'] === undefined),
      )
      const shown = some.map(({ value, datasetId, ...one }) => [one[time], datasetId, value])
      return shown.length === 0 ? [] : [[name, shown]]
    }),
  )
}
