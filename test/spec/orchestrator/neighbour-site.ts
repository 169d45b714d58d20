/**
 * A gateway process with three neighbouring sensors that learned what is normal, and what an application of its
 * orchestrator receives.
 */
import { expect, vi } from 'vitest'
import { createFaultSite, observationId, patience, yesterday } from '#test/spec/faults/stuck-site.ts'

const places = { north: 0, near: 200, far: 3000 }
export type Neighbour = keyof typeof places
export const neighbours = Object.keys(places) as readonly Neighbour[]
const begin = yesterday() - 86_400_000
const path = '/orchestrator/ngsi-ld/v1/subscriptions'

/** Values of a sensor that works, and of one that sticks. */
export const varying = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, i) => 20 + (i % 7) + (i % 3) / 10)
export const stuck = (count: number): readonly number[] => Array.from({ length: count }, () => 25.5)

/** A notification, or a notice. */
export interface Message {
  readonly id: string
  readonly type: string
  readonly subscriptionId: string
  readonly stream?: string
  readonly reason?: string
  readonly switchedTo?: unknown
  readonly updates?: string
  readonly alternatives?: readonly { readonly stream: string; readonly isVirtual: boolean }[]
  readonly data?: readonly { readonly id: string }[]
}

/** Numbers of an observation in messages. */
export const valuesOf = (all: readonly Message[], observation: string): unknown[] =>
  all
    .flatMap(({ data = [] }) => data)
    .filter(({ id }) => id === observation)
    .flatMap((entity) =>
      Object.entries(entity as object).flatMap(([key, attribute]: [string, { value?: unknown }]) =>
        key.endsWith('hasSimpleResult') ? [attribute.value] : [],
      ),
    )

export interface Wish {
  readonly entities: readonly object[]
  readonly onFailure?: string
  readonly tenant?: string
}

interface NeighbourOptions {
  /** The section of that name. */
  readonly orchestrator?: object
  /** Of the devices. */
  readonly intervalMs?: number
}

/** @param env further settings. */
export function createNeighbourSite(
  env: Readonly<Record<string, string>> = {},
  { orchestrator = {}, intervalMs = 600_000 }: NeighbourOptions = {},
) {
  const fields = { temperature: { label: 'temperature', updateInterval: intervalMs / 1000 } }
  const devices = Object.fromEntries(
    Object.entries(places).map(([name, meters]) => [name, { location: [10 + meters / 62_000, 56], fields }]),
  )
  const settings = { provisioning: { devices }, orchestrator: { port: 'off', ...orchestrator } }
  // A busy machine may take long to search for alternatives.
  const site = createFaultSite({ SELVEDGE_LIMITS: 'orchestratorSearchMs=30000', ...env }, settings)
  /** When each device sends next. */
  const next: Record<Neighbour, number> = { north: begin, near: begin, far: begin }
  const headers = { 'Content-Type': 'application/json', 'Selvedge-Client': 'dashboard' }

  const front = {
    ...site,
    /** Starts, and lets each sensor learn. Settles when the ranking knows all of them. */
    async begin(): Promise<void> {
      await site.start()
      for (const name of ['north', 'near'] as const) await front.send(name, varying(120))
      await front.send('far', varying(3))
      for (const name of ['north', 'near'])
        await vi.waitFor(async () => expect(await site.state(name)).toBe('normal'), patience)
      await vi.waitFor(async () => {
        const reply = await site.client().get('/ranking/ngsi-ld/v1/entities?type=iot-stream:IotStream')
        expect(reply.json()).toHaveLength(3)
      }, patience)
    },
    /** Publishes values of a device, one per interval. */
    async send(name: Neighbour, values: readonly number[]): Promise<void> {
      await site.publish(
        name,
        values.map((value, i) => [next[name] + i * intervalMs, value]),
      )
      next[name] += values.length * intervalMs
    },
    ask: ({ entities, onFailure, tenant }: Wish) =>
      site.client().ask('POST', path, {
        body: {
          type: 'Subscription',
          entities,
          watchedAttributes: ['http://www.w3.org/ns/sosa/hasSimpleResult'],
          ...(onFailure === undefined
            ? {}
            : {
                notification: {
                  endpoint: { notifierInfo: [{ key: 'selvedge:onFailure', value: onFailure }] },
                },
              }),
        },
        headers: { ...headers, ...(tenant === undefined ? {} : { 'NGSILD-Tenant': tenant }) },
      }),
    async subscribe(wish: Wish): Promise<string> {
      const reply = await front.ask(wish)
      expect([reply.status, reply.text]).toEqual([200, expect.stringMatching(/^urn:/)])
      return reply.text
    },
    unsubscribe: async (id: string): Promise<number> =>
      (await site.client().ask('DELETE', `${path}/${id}`, { headers })).status,
    /**
     * All messages of a subscription so far, once one meets a condition. None is ever confirmed. After a kill the
     * broker repeats some, with the same id.
     */
    async messages(id: string, isLast: (one: Message) => boolean): Promise<Message[]> {
      const answer = await fetch(`${site.gateway().httpUrl}${path}/${id}/notifications`, {
        headers: { ...headers, Accept: 'text/event-stream' },
        signal: AbortSignal.timeout(100_000),
      })
      expect(answer.status).toBe(200)
      let text = ''
      for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk
        const all = [...text.matchAll(/\ndata: (.*)\n\n/g)].map(([, data]) => JSON.parse(data!) as Message)
        if (all.some(isLast)) return [...new Map(all.map((one) => [one.id, one])).values()]
      }
      expect.unreachable('the stream ended')
    },
    /** The number of watched streams, over all subscriptions. */
    async watched(): Promise<number> {
      const reply = await site.client().get('/selvedge/v1/plugins')
      const plugins = reply.json() as { orchestrator: { notifications: { failures: { watched: number } } } }
      return plugins.orchestrator.notifications.failures.watched
    },
    /**
     * How long after the newest state of a stream its newest notice was stored, by the clock of the gateway, ms.
     */
    async noticeDelayMs(stream: string): Promise<number> {
      const reply = await site.client().get(`/ngsi-ld/v1/entities/${stream}?options=sysAttrs`)
      const { 'urn:selvedge:ns:state': state } = reply.json() as Record<string, { modifiedAt: string }>
      const [notice] = site
        .gateway()
        .logLines()
        .filter(({ event, stream: of }) => /^orchestrator\.stream-/.test(String(event)) && of === stream)
        .slice(-1)
      return Date.parse(String(notice!['at'])) - Date.parse(state!.modifiedAt)
    },
  }
  return front
}

export const observed = (name: Neighbour) => ({ id: observationId(name), type: 'StreamObservation' })
