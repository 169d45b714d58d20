/**
 * Streams whose data is at a real RabbitMQ: queues and bindings of exchanges, each message counted once, whichever
 * process is killed or restarted in between.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConfirmChannel, connect } from 'amqplib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describePeer } from '#test/kit/peers.ts'
import { createRabbitmq, type Rabbitmq } from '#test/kit/rabbitmq.ts'
import { patience, type SourceSite, sourceSite, streamAt } from './source-site.ts'

const own = 'urn:selvedge:ns:'

describePeer('rabbitmq', 'streams with AMQP sources', (path) => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-amqp-'))
  let site: SourceSite
  let rabbitmq: Rabbitmq
  let sent = 0
  const counted = (name: string, count: number) => expect.poll(() => site.count(name), patience).toBe(count)

  /** Settles when RabbitMQ has done the work, and confirmed what was published. */
  async function channel(work: (channel: ConfirmChannel) => unknown): Promise<void> {
    const connection = await connect(rabbitmq.url)
    const opened = await connection.createConfirmChannel()
    await work(opened)
    await opened.waitForConfirms()
    await connection.close()
  }
  /** Publishes, and returns how many messages a queue received. */
  async function publish(exchange: string, key: string, messages: readonly string[]): Promise<number> {
    let routed = messages.length
    await channel((opened) => {
      opened.on('return', () => routed--)
      for (const message of messages)
        opened.publish(exchange, key, Buffer.from(message), {
          persistent: true,
          mandatory: true,
          messageId: `${++sent}`,
        })
    })
    return routed
  }
  const repeat = (count: number, message = '20') => Array.from({ length: count }, () => message)

  beforeAll(async () => {
    rabbitmq = await createRabbitmq(path)
    await rabbitmq.start()
    await channel(async (opened) => {
      await opened.assertQueue('readings')
      await opened.assertExchange('plant', 'topic')
    })
    const passwordFile = join(folder, 'password')
    writeFileSync(passwordFile, 'guest\n', { mode: 0o600 })
    site = sourceSite(join(folder, 'data'), {
      hosts: [{ url: rabbitmq.url, username: 'guest', passwordFile }],
    })
    await site.start()
    await site.create([
      ...streamAt('queue', rabbitmq.url, { [`${own}queue`]: 'readings', [`${own}field`]: 'humidity' }),
      ...streamAt('bound', rabbitmq.url, {
        [`${own}exchange`]: 'plant',
        [`${own}routingKey`]: 'plant.*.temp',
      }),
      ...streamAt('late', rabbitmq.url, { [`${own}queue`]: 'late' }),
    ])
    await site.connected(rabbitmq.url)
  }, 300_000)
  afterAll(async () => {
    await site.gateway().stop()
    await rabbitmq.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  it('counts messages of a queue, and those that a binding of an exchange selects', async () => {
    await publish('', 'readings', ['{"humidity": 40, "battery": 3}', '{"humidity": 41, "battery": 3}'])
    await counted('queue', 2)
    let routed = 0
    await expect
      .poll(async () => (routed += await publish('plant', 'plant.7.temp', ['20'])), patience)
      .toBeGreaterThan(0)
    expect(await publish('plant', 'plant.7.humidity', repeat(3))).toBe(0)
    routed += await publish('plant', 'plant.8.temp', repeat(3))
    await counted('bound', routed)
  })

  it('follows a queue that is declared later', async () => {
    await expect
      .poll(() => site.sources(), patience)
      .toContainEqual(expect.objectContaining({ source: rabbitmq.url, state: 'connected', places: 3 }))
    await channel((opened) => opened.assertQueue('late'))
    await publish('', 'late', repeat(5))
    await counted('late', 5)
    const [source] = await site.sources()
    expect(source).toMatchObject({ failures: expect.toSatisfy((n) => n > 0) })
    expect(source).not.toHaveProperty('reason')
  })

  it('counts a message once that was stored and not acknowledged when it was killed', async () => {
    await site.gateway().stop()
    await publish('', 'late', repeat(20))
    await site.start('quality:stored=kill').catch(() => undefined)
    await site.gateway().exited
    await publish('', 'late', repeat(20))
    await site.start()
    await counted('late', 45)
    const [source] = await site.sources()
    expect(source).toMatchObject({ source: rabbitmq.url, repeated: expect.toSatisfy((n) => n > 0) })
  })

  it('counts what arrived while it was away, and through a restart of the broker', async () => {
    const bound = await site.count('bound')
    await site.gateway().kill()
    await publish('plant', 'plant.7.temp', repeat(30))
    await rabbitmq.kill()
    await Promise.all([rabbitmq.start(), site.start()])
    await counted('bound', bound + 30)
    await publish('', 'late', repeat(5))
    await counted('late', 50)
  })
})
