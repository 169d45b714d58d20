/**
 * `npm run notifications -- [--count 100000] [--restarts 3] [--kills 2]`: notifications of 100 entities are posted to the
 * orchestrator, while RabbitMQ restarts and the gateway is killed. A durable consumer must get each at least once, in
 * order per entity, with the same id in each repeat. Ends with 1 where that is not so.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type AmqpApplication, type ConsumedMessage, consumeQueue } from '#test/kit/amqp-application.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { findPeer } from '#test/kit/peer-table.ts'
import { freePort } from '#test/kit/ports.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createRabbitmq } from '#test/kit/rabbitmq.ts'
import { optionsOf, wholeNumber } from './options.ts'

const help = `Usage: npm run notifications -- [options]

Notifications through a RabbitMQ that restarts and an orchestrator that is killed.

  --count N     notifications (default 100000)
  --restarts N  restarts of RabbitMQ (default 3)
  --kills N     kills of the gateway (default 2)

Exit code: 0 each arrived, in order per entity; 1 not so; 64 wrong usage.
`
const values = optionsOf('notifications', help, {
  count: { type: 'string', default: '100000' },
  restarts: { type: 'string', default: '3' },
  kills: { type: 'string', default: '2' },
})
for (const name of ['count', 'restarts', 'kills'] as const)
  wholeNumber('notifications', name, values[name], 0)
const [count, restarts, kills] = [Number(values.count), Number(values.restarts), Number(values.kills)]
const entities = 100
const say = (line: string): void => void process.stdout.write(`${new Date().toISOString()} ${line}\n`)

const path = findPeer('rabbitmq')
if (path === undefined) {
  say('RabbitMQ is missing')
  process.exit(1)
}
const folder = mkdtempSync(join(tmpdir(), 'selvedge-notifications-'))
const rabbitmq = await createRabbitmq(path)
await rabbitmq.start()
const port = `${await freePort()}`
const startGateway = (): Promise<GatewayProcess> =>
  startGatewayProcess({
    dataFolder: join(folder, 'data'),
    env: { SELVEDGE_HTTP_PORT: port, SELVEDGE_MQTT_PORT: 'off' },
    config: { orchestrator: { port: 'off', amqp: { host: rabbitmq.url } } },
  })
let gateway = await startGateway()
const { ask, get } = httpClient(gateway.httpUrl)
const subscribed = await ask('POST', '/orchestrator/ngsi-ld/v1/subscriptions', {
  headers: { 'Content-Type': 'application/json' },
  body: {
    type: 'Subscription',
    entities: [{ type: 'StreamObservation' }],
    notification: { endpoint: { notifierInfo: [{ key: 'selvedge:delivery', value: 'durable' }] } },
  },
})
const id = subscribed.text
const queue = subscribed.headers['selvedge-queue']!
const broker = (await get(`/ngsi-ld/v1/subscriptions/${id}`)).json() as {
  notification: { endpoint: { uri: string } }
}
const address = broker.notification.endpoint.uri
let acknowledged = 0
let repeatedRequests = 0
const messages: ConsumedMessage[] = []
let isConsuming = true

/** Posts one notification until it is acknowledged. */
async function post(n: number): Promise<void> {
  const body = JSON.stringify({
    id: `urn:ngsi-ld:Notification:${n}`,
    type: 'Notification',
    subscriptionId: id,
    data: [{ id: `urn:ngsi-ld:StreamObservation:${n % entities}`, type: 'StreamObservation', n }],
  })
  for (;;) {
    try {
      const answer = await fetch(address, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
        signal: AbortSignal.timeout(30_000),
      })
      await answer.arrayBuffer()
      if (answer.status === 200) break
    } catch {
      // The gateway is down.
    }
    repeatedRequests++
    await pause(100)
  }
  acknowledged++
}

/** Posts those of every tenth entity, in order. */
async function postAll(lane: number): Promise<void> {
  for (let n = lane; n < count; n += 10) await post(n)
}

/** Consumes the queue, again after each cut. */
async function consume(): Promise<void> {
  while (isConsuming) {
    let application: AmqpApplication | undefined
    try {
      application = await consumeQueue(rabbitmq.url, queue, { messages })
      await application.closed
    } catch {
      // RabbitMQ is down.
    }
    await pause(200)
  }
}

/** Restarts and kills, evenly over the run. */
async function disturb(): Promise<void> {
  const steps = [
    ...Array.from({ length: restarts }, (_, i) => ({ at: (i + 0.5) / restarts, what: 'restart' })),
    ...Array.from({ length: kills }, (_, i) => ({ at: (i + 0.8) / (kills + 0.5), what: 'kill' })),
  ].toSorted((a, b) => a.at - b.at)
  for (const { at, what } of steps) {
    while (acknowledged < at * count) await pause(50)
    say(`${what} after ${acknowledged} notifications, ${messages.length} consumed`)
    if (what === 'restart') {
      await rabbitmq.kill('SIGKILL')
      await pause(1000)
      await rabbitmq.start()
    } else {
      await gateway.kill()
      gateway = await startGateway()
    }
    say('done')
  }
}

const from = performance.now()
const consuming = consume()
await Promise.all([disturb(), ...Array.from({ length: 10 }, (_, lane) => postAll(lane))])
say(`${acknowledged} acknowledged after ${Math.round((performance.now() - from) / 1000)} s`)
const seen = new Set<string>()
let read = 0
/** Reads what was consumed since the last call. */
function unique(): number {
  for (; read < messages.length; read++) seen.add((JSON.parse(messages[read]!.body) as { id: string }).id)
  return seen.size
}
const until = performance.now() + 300_000
while (unique() < count && performance.now() < until) await pause(200)
isConsuming = false

const first = new Set<string>()
const last = new Map<string, number>()
let repeats = 0
let disorder = 0
for (const { body } of messages) {
  const { id: name, data } = JSON.parse(body) as { id: string; data: [{ id: string; n: number }] }
  if (first.has(name)) {
    repeats++
    continue
  }
  first.add(name)
  const [{ id: entity, n }] = data
  if (n < (last.get(entity) ?? -1)) disorder++
  last.set(entity, n)
}
const isGood = first.size === count && disorder === 0
say(
  `${first.size} of ${count} arrived, ${repeats} repeats, ${disorder} out of order per entity, ` +
    `${repeatedRequests} requests repeated, ${Math.round((performance.now() - from) / 1000)} s: ${isGood ? 'good' : 'BAD'}`,
)
await gateway.stop()
await rabbitmq.remove()
await Promise.race([consuming, pause(1000)])
rmSync(folder, { recursive: true, force: true })
process.exit(isGood ? 0 : 1)
