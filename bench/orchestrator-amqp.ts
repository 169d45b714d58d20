/**
 * Part of `npm run bench -- orchestrator`: notifications that the gateway stored and publishes to RabbitMQ with confirms,
 * beside the rate of amqplib alone with the same messages, exchange and window in the same run.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'amqplib'
import { limits } from '#base/limits/limits.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { findPeer } from '#test/kit/peer-table.ts'
import { startGatewayProcess } from '#test/kit/process.ts'
import { createRabbitmq } from '#test/kit/rabbitmq.ts'

const say = (line: string): void => void process.stdout.write(`${line}\n`)

interface NotificationStatus {
  readonly waiting: number
}

/** Stores notifications while RabbitMQ is away, then measures how fast they are confirmed. */
export async function benchAmqp(quick: boolean): Promise<void> {
  const path = findPeer('rabbitmq')
  if (path === undefined) return say('RabbitMQ is missing: no figures for AMQP')
  const count = quick ? 5_000 : 50_000
  const rabbitmq = await createRabbitmq(path)
  const gateway = await startGatewayProcess({
    env: { SELVEDGE_MQTT_PORT: 'off' },
    config: { orchestrator: { port: 'off', amqp: { host: rabbitmq.url } } },
  })
  try {
    const { ask, get } = httpClient(gateway.httpUrl)
    const status = async () =>
      ((await get('/selvedge/v1/plugins')).json() as { orchestrator: { notifications: NotificationStatus } })
        .orchestrator.notifications
    const body = { type: 'Subscription', entities: [{ type: 'StreamObservation' }] }
    const id = (
      await ask('POST', '/orchestrator/ngsi-ld/v1/subscriptions', {
        body,
        headers: { 'Content-Type': 'application/json' },
      })
    ).text
    const { notification } = (await get(`/ngsi-ld/v1/subscriptions/${id}`)).json() as {
      notification: { endpoint: { uri: string } }
    }
    const address = notification.endpoint.uri
    const from = performance.now()
    await Promise.all(
      Array.from({ length: 16 }, (_, lane) => store(address, id, { from: lane, step: 16, count })),
    )
    const storedMs = performance.now() - from
    say(`stored and acknowledged by POST /notify: ${rate(count, storedMs)}`)
    await rabbitmq.start()
    await gateway.event('orchestrator.amqp-connected')
    const begin = performance.now()
    while ((await status()).waiting > 0) await pause(20)
    const oursMs = performance.now() - begin
    const rawMs = await raw(rabbitmq.url, id, count)
    say(`published and confirmed: ${rate(count, oursMs)}; amqplib alone: ${rate(count, rawMs)}`)
    say(`share of the raw rate: ${((100 * rawMs) / oursMs).toFixed(0)} %  (goal 50 %)`)
  } finally {
    await gateway.stop()
    await rabbitmq.remove()
  }
}

const rate = (count: number, ms: number): string => `${Math.round((1000 * count) / ms)} notifications/s`

const notificationOf = (id: string, n: number) =>
  JSON.stringify({
    id: `urn:ngsi-ld:Notification:${n}`,
    type: 'Notification',
    subscriptionId: id,
    notifiedAt: '2026-01-01T00:00:00.000Z',
    data: [
      {
        id: `urn:ngsi-ld:StreamObservation:${n % 100}`,
        type: 'http://purl.org/iot/ontology/iot-stream#StreamObservation',
        'http://www.w3.org/ns/sosa/hasSimpleResult': {
          type: 'Property',
          value: n,
          observedAt: '2026-01-01T00:00:00.000Z',
        },
      },
    ],
  })

async function store(
  address: string,
  id: string,
  { from, step, count }: { from: number; step: number; count: number },
): Promise<void> {
  for (let n = from; n < count; n += step) {
    const answer = await fetch(address, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: notificationOf(id, n),
    })
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new RangeError(`a notification was answered with ${answer.status}`)
  }
}

/** How long the same messages take amqplib alone, with as many in flight. */
async function raw(url: string, id: string, count: number): Promise<number> {
  const connection = await connect(url)
  const channel = await connection.createConfirmChannel()
  await channel.assertExchange('raw', 'fanout', { durable: false })
  const bodies = Array.from({ length: count }, (_, n) => Buffer.from(notificationOf(id, n)))
  const { promise, resolve } = Promise.withResolvers<void>()
  let sent = 0
  let confirmed = 0
  const fill = (): void => {
    while (sent < count && sent - confirmed < limits.orchestratorInFlightMax.value)
      channel.publish('raw', '', bodies[sent++]!, { correlationId: id }, () => {
        confirmed++
        if (confirmed === count) resolve()
        else if (sent - confirmed <= limits.orchestratorInFlightMax.value / 2) fill()
      })
  }
  const from = performance.now()
  fill()
  await promise
  const ms = performance.now() - from
  await connection.close()
  return ms
}
