/** A gateway with its orchestrator, and what an application asks of it. */
import { expect, vi } from 'vitest'
import type { FaultProxy } from '#test/kit/fault-proxy.ts'
import { httpClient, type Reply } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import type { Rabbitmq } from '#test/kit/rabbitmq.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
/** The attribute that applications watch. */
export const watched = `${sosa}hasSimpleResult`
export const iotStream = 'http://purl.org/iot/ontology/iot-stream#'

/** What a test waits for may take a busy machine long. */
export const patience = { interval: 50 }

export const observationId = (name: string): string => `urn:ngsi-ld:StreamObservation:${name}`

export interface NotificationStatus {
  readonly subscriptions: number
  readonly waiting: number
  readonly givenUp: number
  readonly amqp?: { readonly state: string; readonly reason?: string; readonly rejecting: readonly string[] }
}

/** A gateway whose orchestrator publishes to a RabbitMQ. */
export interface AmqpSite {
  rabbitmq: Rabbitmq
  /** Between the gateway and RabbitMQ. */
  way: FaultProxy
  site: ApplicationSite
}

export type ApplicationSite = ReturnType<typeof applicationSite>

/** @param env further settings of the process. */
export function applicationSite(
  dataFolder: string,
  settings: object,
  env: Readonly<Record<string, string>> = {},
) {
  let running: GatewayProcess | undefined
  const client = () => httpClient(running!.httpUrl)
  const site = {
    async start(failpoints = ''): Promise<void> {
      running = await startGatewayProcess({
        dataFolder,
        env: { SELVEDGE_MQTT_PORT: 'off', SELVEDGE_FAILPOINTS: failpoints, ...env },
        config: { orchestrator: { port: 'off', ...settings } },
      })
    },
    gateway: () => running!,
    async stop(): Promise<void> {
      await running?.stop()
    },
    ask: (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
      client().ask(method, `/orchestrator${path}`, {
        ...(body === undefined ? {} : { body }),
        headers: { 'Content-Type': 'application/json', ...headers },
      }),
    /** Creates the observation of that name, or changes its value. */
    async observe(name: string, value: number): Promise<void> {
      const id = observationId(name)
      const result = { type: 'Property', value }
      const attributes = { [watched]: result }
      const changed = await site.ask('PATCH', `/ngsi-ld/v1/entities/${id}/attrs`, attributes)
      if (changed.status === 204) return
      const created = await site.ask('POST', '/ngsi-ld/v1/entities', {
        id,
        type: `${iotStream}StreamObservation`,
        ...attributes,
      })
      expect([created.status, created.text]).toEqual([201, expect.anything()])
    },
    /** Subscribes to an observation as the original clients do; with `selvedge:delivery` if one is given. */
    async subscribed(name: string, delivery?: string, as = 'a'): Promise<Reply> {
      const notifierInfo = [{ key: 'selvedge:delivery', value: delivery }]
      const reply = await site.ask(
        'POST',
        '/ngsi-ld/v1/subscriptions',
        {
          type: 'Subscription',
          entities: [{ id: observationId(name), type: `${iotStream}StreamObservation` }],
          watchedAttributes: [watched],
          ...(delivery === undefined ? {} : { notification: { endpoint: { notifierInfo } } }),
        },
        { 'Selvedge-Client': as },
      )
      expect([reply.status, reply.headers['content-type'], reply.text]).toEqual([
        200,
        expect.stringContaining('text/plain'),
        expect.stringMatching(/^urn:[\da-f-]{36}$/),
      ])
      return reply
    },
    subscribe: async (name: string, delivery?: string, as?: string): Promise<string> =>
      (await site.subscribed(name, delivery, as)).text,
    unsubscribe: async (id: string, as = 'a'): Promise<number> =>
      (await site.ask('DELETE', `/ngsi-ld/v1/subscriptions/${id}`, undefined, { 'Selvedge-Client': as }))
        .status,
    async status(): Promise<NotificationStatus> {
      const reply = await client().get('/selvedge/v1/plugins')
      return (reply.json() as { orchestrator: { notifications: NotificationStatus } }).orchestrator
        .notifications
    },
    async connected(): Promise<void> {
      await vi.waitFor(async () => expect((await site.status()).amqp?.state).toBe('connected'), patience)
    },
    /** Ids of the observations of a stream, by GraphQL. */
    async observationsOf(stream: string): Promise<string[]> {
      const query = `{ streamObservations(belongsTo: { id: "${stream}" }) { id } }`
      const reply = await client().send('POST', '/search/graphql', { query })
      const { data } = reply.json() as { data: { streamObservations: { id: string }[] } }
      return data.streamObservations.map(({ id }) => id)
    },
    /** Address at which the broker notifies the orchestrator of a subscription. */
    async addressOf(id: string): Promise<string> {
      const reply = await client().get(`/ngsi-ld/v1/subscriptions/${id}`)
      const { notification } = reply.json() as { notification: { endpoint: { uri: string } } }
      return notification.endpoint.uri
    },
  }
  return site
}
