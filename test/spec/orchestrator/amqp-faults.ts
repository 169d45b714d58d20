/** Tests of notifications at a RabbitMQ whose connection is reset, whose queue is full, and whose consumer is slow. */
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'amqplib'
import { expect, it } from 'vitest'
import { consumeExchange, consumeQueue, declareExchange } from '#test/kit/amqp-application.ts'
import { type AmqpSite, observationId, patience, watched } from './application-site.ts'

export function faultTests(place: AmqpSite): void {
  /** Posts notifications to the address of a subscription, as a broker does; the next when the former is on disk. */
  async function notify(id: string, values: readonly number[]): Promise<void> {
    const address = await place.site.addressOf(id)
    for (const value of values) {
      const data = [{ id: observationId('x'), [watched]: { type: 'Property', value } }]
      const body = JSON.stringify({
        id: `urn:n:${id}:${value}`,
        type: 'Notification',
        subscriptionId: id,
        data,
      })
      const headers = { 'Content-Type': 'application/json' }
      const answer = await fetch(address, { method: 'POST', headers, body })
      expect([answer.status, await answer.text()]).toEqual([200, `Received: urn:n:${id}:${value}`])
    }
  }

  const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

  it('loses nothing when the connection is reset in the middle of publishing', async () => {
    const { site, way, rabbitmq } = place
    const { text: id, headers } = await site.subscribed('reset', 'durable')
    const application = await consumeQueue(rabbitmq.url, headers['selvedge-queue']!)
    const posting = notify(id, upTo(300))
    for (const count of [50, 150]) {
      await expect.poll(() => application.messages.length, patience).toBeGreaterThan(count)
      await way.set('refused')
      await way.set('none')
    }
    await posting
    await expect.poll(() => [...new Set(application.values())], patience).toEqual(upTo(300))
    await expect.poll(async () => (await site.status()).waiting, patience).toBe(0)
    await application.close()
    expect(await site.unsubscribe(id)).toBe(204)
  })

  it('passes all notifications in order to a slow consumer, whose queue is full meanwhile', async () => {
    const { site, rabbitmq } = place
    const { text: id, headers } = await site.subscribed('slow', 'durable')
    await notify(id, upTo(40))
    await expect.poll(async () => (await site.status()).amqp?.rejecting, patience).toContain(id)
    const connection = await connect(rabbitmq.url)
    const channel = await connection.createChannel()
    await channel.prefetch(1)
    const values: unknown[] = []
    let acknowledged: Promise<void> | undefined
    await channel.consume(headers['selvedge-queue']!, (message) => {
      const { data } = JSON.parse(message!.content.toString()) as {
        data: [Record<string, { value: number }>]
      }
      values.push(data[0][watched]!.value)
      acknowledged = pause(5).then(() => channel.ack(message!))
    })
    await expect.poll(() => values, patience).toEqual(upTo(40))
    await acknowledged
    await connection.close()
    expect(await site.unsubscribe(id)).toBe(204)
  })

  it('publishes to an exchange whose name has odd characters', async () => {
    const { site, rabbitmq } = place
    const id = `urn:x:a+b#c*.%20'&=~(!)/?`
    const subscribe = (name: string) => {
      const body = { id: name, type: 'Subscription', entities: [{ type: 'Odd' }] }
      return site.ask('POST', '/ngsi-ld/v1/subscriptions', body, { 'Selvedge-Client': 'a' })
    }
    const answer = await subscribe(id)
    expect([answer.status, answer.text]).toEqual([200, id])
    const application = await consumeExchange(rabbitmq.url, id)
    await site.ask('POST', '/ngsi-ld/v1/entities', {
      id: 'urn:x:odd',
      type: 'Odd',
      level: { type: 'Property', value: 1 },
    })
    await expect.poll(() => application.messages.map(({ exchange }) => exchange), patience).toEqual([id])
    await application.close()
    expect(await site.unsubscribe(encodeURIComponent(id))).toBe(204)
    await expect(declareExchange(rabbitmq.url, id, { passive: true })).rejects.toThrow('NOT_FOUND')
    for (const [name, reason] of [
      ['amq.urn:x', 'amq.'],
      ['urn:x:→', 'ASCII'],
      ['urn:x:a b', 'ASCII'],
    ] as const) {
      const { status, text } = await subscribe(name)
      expect([status, text]).toEqual([400, expect.stringContaining(reason)])
    }
  })
}
