/**
 * Tests of notices at a real RabbitMQ: a sensor of a gateway with fault detection fails and recovers, and the
 * example client of docs/examples/orchestrator receives that.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type ApplicationMessage,
  openNotificationClient,
} from '#examples/orchestrator/notification-client.ts'
import { observationId, streamId } from '#test/spec/faults/stuck-site.ts'
import { type AmqpSite, patience } from './application-site.ts'
import { createNeighbourSite, type Message, observed, stuck, valuesOf, varying } from './neighbour-site.ts'

export function noticeTests(place: AmqpSite): void {
  describe('a sensor that fails, at an application that consumes from RabbitMQ', () => {
    let site: ReturnType<typeof createNeighbourSite>
    beforeAll(async () => {
      const orchestrator = { amqp: { host: new URL(place.rabbitmq.url).host } }
      site = createNeighbourSite({ SELVEDGE_VIRTUAL_SENSORS_ENABLED: 'false' }, { orchestrator })
      await site.begin()
    }, 120_000)
    afterAll(() => site.end())

    /** A client, its notices, and the values of the alternative. */
    function application(name: string, { isDurable = false, isSwitching = false } = {}) {
      const notices: ApplicationMessage[] = []
      const values: unknown[] = []
      const notifierInfo = [{ key: 'selvedge:onFailure', value: 'switch' }]
      const client = openNotificationClient({
        orchestrator: `${site.gateway().httpUrl}/orchestrator`,
        client: name,
        subscription: {
          type: 'Subscription',
          entities: [observed('north')],
          watchedAttributes: ['http://www.w3.org/ns/sosa/hasSimpleResult'],
          ...(isSwitching ? { notification: { endpoint: { notifierInfo } } } : {}),
        },
        amqp: { url: place.rabbitmq.url, isDurable },
        onNotification: (one) => void values.push(...valuesOf([one as Message], observationId('near'))),
        onNotice: (notice) => void notices.push(notice),
      })
      return { client, notices, values, isSwitching }
    }

    it('gives each client one notice of the failure and one of the recovery, and values of the alternative on request', async () => {
      const all = [
        application('first'),
        application('second'),
        application('durable', { isDurable: true }),
        application('switching', { isSwitching: true }),
        application('switching-durable', { isSwitching: true, isDurable: true }),
      ]
      const ids = await Promise.all(all.map(({ client }) => client.subscribed))
      expect(new Set(ids).size).toBe(2)
      for (const { client } of all) await expect.poll(() => client.isReceiving(), patience).toBe(true)
      await site.send('north', stuck(10))
      for (const [i, { notices, isSwitching }] of all.entries()) {
        await expect.poll(() => notices, patience).toHaveLength(1)
        expect(notices[0]).toMatchObject({
          type: 'StreamFailure',
          subscriptionId: ids[i],
          stream: streamId('north'),
          reason: 'fault',
          alternatives: [{ stream: streamId('near') }, { stream: streamId('far') }],
        })
        const near = { stream: streamId('near'), entity: observationId('near') }
        expect(notices[0]!['switchedTo']).toEqual(isSwitching ? near : undefined)
      }
      await expect
        .poll(async () => (await site.client().get(`/ngsi-ld/v1/subscriptions/${ids[3]}`)).text, patience)
        .toContain(observationId('near'))
      await site.send('near', [21.1])
      for (const { values } of all.slice(3)) await expect.poll(() => values, patience).toEqual([21.1])
      await site.send('north', varying(70))
      for (const { notices } of all) {
        await expect.poll(() => notices, patience).toHaveLength(2)
        expect(notices[1]).toMatchObject({
          type: 'StreamRecovery',
          failure: notices[0]!.id,
          detail: 'normal',
        })
      }
      expect(all.map(({ values }) => values)).toEqual([[], [], [], [21.1], [21.1]])
      for (const { client } of all) await client.unsubscribe()
    })
  })
}
