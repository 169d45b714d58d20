/**
 * Notifications at a real RabbitMQ: as clients of the original consume them, and durable ones through restarts and
 * kills on both sides.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { consumeExchange, consumeQueue, declareExchange } from '#test/kit/amqp-application.ts'
import { createFaultProxy } from '#test/kit/fault-proxy.ts'
import { describePeer } from '#test/kit/peers.ts'
import { freePort } from '#test/kit/ports.ts'
import { createRabbitmq } from '#test/kit/rabbitmq.ts'
import { accessTests } from './amqp-access.ts'
import { clientTests } from './amqp-client.ts'
import { faultTests } from './amqp-faults.ts'
import { noticeTests } from './amqp-notices.ts'
import { stopTests } from './amqp-stop.ts'
import {
  type AmqpSite,
  applicationSite,
  iotStream,
  observationId,
  patience,
  watched,
} from './application-site.ts'

describePeer('rabbitmq', 'notifications by AMQP', (path) => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-orchestrator-amqp-'))
  const place = {} as AmqpSite

  beforeAll(async () => {
    const rabbitmq = await createRabbitmq(path)
    await rabbitmq.start()
    const way = await createFaultProxy({
      target: { host: '127.0.0.1', port: Number(new URL(rabbitmq.url).port) },
    })
    const host = `127.0.0.1:${way.port}`
    const site = applicationSite(
      join(folder, 'data'),
      { amqp: { host } },
      {
        SELVEDGE_LIMITS: 'orchestratorQueueMessages=20,amqpRetryMs=300',
        SELVEDGE_HTTP_PORT: `${await freePort()}`,
      },
    )
    Object.assign(place, { rabbitmq, way, site })
    await site.start()
    await site.connected()
  }, 300_000)
  afterAll(async () => {
    await place.site?.stop()
    await place.way?.close()
    await place.rabbitmq?.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  it('serves a client of the original: the id as text, then a transient fanout exchange of that name', async () => {
    const { site, rabbitmq } = place
    await site.observe('a', 1)
    const id = await site.subscribe('a')
    await declareExchange(rabbitmq.url, id)
    const application = await consumeExchange(rabbitmq.url, id)
    await site.observe('a', 2)
    await expect.poll(() => application.values(), patience).toEqual([2])
    expect(application.messages).toEqual([
      expect.objectContaining({ exchange: id, routingKey: '', correlationId: id }),
    ])
    expect(JSON.parse(application.messages[0]!.body)).toMatchObject({
      type: 'Notification',
      subscriptionId: id,
      data: [{ id: observationId('a') }],
    })
    await application.close()
    expect(await site.unsubscribe(id)).toBe(204)
    await expect(declareExchange(rabbitmq.url, id, { passive: true })).rejects.toThrow('NOT_FOUND')
  })

  it.each(['json', 'ld+json'])(
    'serves the flow of a Java client without @context, as application/%s',
    async (format) => {
      const { site, rabbitmq } = place
      const type = { 'Content-Type': `application/${format}`, 'Selvedge-Client': 'java' }
      const stream = `urn:ngsi-ld:IotStream:java-${format}`
      const observation = observationId(`java-${format}`)
      const value = (number: number) => ({ [watched]: { type: 'Property', value: number } })
      const belongsTo = { [`${iotStream}belongsTo`]: { type: 'Relationship', object: stream } }
      for (const entity of [
        { id: stream, type: `${iotStream}IotStream` },
        { id: observation, type: `${iotStream}StreamObservation`, ...belongsTo, ...value(1) },
      ])
        expect((await site.ask('POST', '/ngsi-ld/v1/entities', entity, type)).status).toBe(201)
      await expect.poll(() => site.observationsOf(stream), patience).toEqual([observation])
      const subscribe = () =>
        site.ask(
          'POST',
          '/ngsi-ld/v1/subscriptions',
          {
            type: 'Subscription',
            entities: [{ id: observation, type: `${iotStream}StreamObservation` }],
            watchedAttributes: [watched],
          },
          type,
        )
      const shown = async (id: string) => (await site.ask('GET', `/ngsi-ld/v1/subscriptions/${id}/`)).status
      const { text: id } = await subscribe()
      expect(await site.unsubscribe(id, 'java')).toBe(204)
      expect(await shown(id)).toBe(404)
      const { status, text, headers } = await subscribe()
      expect([status, text, headers['content-type']]).toEqual([
        200,
        id,
        expect.stringMatching(/^text\/plain/),
      ])
      expect(await shown(id)).toBe(200)
      await declareExchange(rabbitmq.url, id)
      const application = await consumeExchange(rabbitmq.url, id)
      await site.ask('PATCH', `/ngsi-ld/v1/entities/${observation}/attrs`, value(2), type)
      await expect.poll(() => application.values(), patience).toEqual([2])
      await application.close()
      expect(await site.unsubscribe(id, 'java')).toBe(204)
    },
  )

  it('keeps notifications in order while a queue is full, and through a reset of the connection', async () => {
    const { site, rabbitmq, way } = place
    await site.observe('c', 0)
    const { text: id, headers } = await site.subscribed('c', 'durable')
    for (let i = 1; i <= 30; i++) await site.observe('c', i)
    await expect.poll(async () => (await site.status()).amqp?.rejecting, patience).toEqual([id])
    await way.set('refused')
    await site.observe('c', 31)
    await way.set('none')
    const application = await consumeQueue(rabbitmq.url, headers['selvedge-queue']!)
    const all = Array.from({ length: 31 }, (_, i) => i + 1)
    await expect.poll(() => [...new Set(application.values())], patience).toEqual(all)
    await expect.poll(async () => (await site.status()).waiting, patience).toBe(0)
    await application.close()
  })

  faultTests(place)
  noticeTests(place)
  stopTests(place)
  accessTests(place, folder)
  clientTests(place)
})
