/** Tests of a gateway that stops while RabbitMQ goes away, or does not respond any more. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createFaultProxy, type Fault } from '#test/kit/fault-proxy.ts'
import { type AmqpSite, applicationSite, iotStream, observationId, patience } from './application-site.ts'

/** Registers the tests. The last one kills RabbitMQ, and starts it again. */
export function stopTests(place: AmqpSite): void {
  /** A gateway that is connected to RabbitMQ, and has a notification to publish at each moment. */
  async function connectedSite() {
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-amqp-stop-'))
    const way = await createFaultProxy({
      target: { host: '127.0.0.1', port: Number(new URL(place.rabbitmq.url).port) },
    })
    const site = applicationSite(folder, { amqp: { host: `127.0.0.1:${way.port}` } })
    await site.start()
    await site.connected()
    await site.subscribe('stop', 'durable')
    return {
      site,
      way,
      /** Stops the gateway, which has to end by itself: after a timeout it would exit with 70. */
      async stopped() {
        expect(await site.gateway().kill('SIGTERM')).toEqual({ code: 0, signal: null })
        const events = site
          .gateway()
          .logLines()
          .map(({ event }) => event)
        expect(events).toContain('gateway.stopped')
        await way.close()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  }

  it.each<Fault>(['blackhole', 'half-open', 'refused'])(
    'stops while notifications wait for a connection that is %s',
    async (fault) => {
      const { site, way, stopped } = await connectedSite()
      await way.set(fault)
      await site.observe('stop', 1)
      await expect.poll(async () => (await site.status()).waiting, patience).toBe(1)
      await stopped()
    },
  )

  it('answers a client that waits for a declaration when it stops', async () => {
    const { site, way, stopped } = await connectedSite()
    await way.set('blackhole')
    const body = {
      type: 'Subscription',
      entities: [{ id: observationId('late'), type: `${iotStream}StreamObservation` }],
    }
    const answer = site.ask('POST', '/ngsi-ld/v1/subscriptions', body)
    await expect.poll(async () => (await site.status()).subscriptions, patience).toBe(2)
    await stopped()
    expect((await answer).status).toBe(200)
  })

  it('stops while RabbitMQ stops', async () => {
    const { site, stopped } = await connectedSite()
    await site.observe('stop', 1)
    await Promise.all([place.rabbitmq.kill(), stopped()])
    await place.rabbitmq.start()
  })
}
