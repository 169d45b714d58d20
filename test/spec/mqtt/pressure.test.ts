/** Overload: a slow subscriber, a full disk, a full door. No other client may notice. */
import { generate } from 'mqtt-packet'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { GatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Work } from '#broker/commit/work-queue.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import {
  type Broker,
  type BrokerOptions,
  connectRaw,
  openBroker,
  publishPacket,
  type RawClient,
  subscribePacket,
  textOf,
} from '#test/kit/mqtt.ts'

let file: TemporaryDatabase
let broker: Broker

async function start(options: BrokerOptions = {}): Promise<void> {
  broker = await openBroker(file.file, options)
}

beforeEach(() => {
  file = temporaryDatabase()
})

afterEach(async () => {
  await broker.close()
  file.remove()
})

async function subscriber(id: string, filter: string, qos: 0 | 1 | 2, clean = true): Promise<RawClient> {
  const client = await connectRaw(broker.port, id, { clean })
  client.send(subscribePacket(1, [filter, qos]))
  // Refused clients get a reason.
  const answer = await client.next().catch(() => ({ connack: client.connack, log: broker.lines.slice(-3) }))
  expect(answer).toMatchObject({ cmd: 'suback' })
  return client
}

describe('a frozen subscriber', () => {
  const payload = Buffer.alloc(16_384, 'x')

  /**
   * Publishes 16 MB, each message after the PUBACK of the previous one; returns the longest wait for PUBACK
   * in ms.
   */
  async function publishMuch(qos: 0 | 1): Promise<number> {
    const client = await connectRaw(broker.port, 'publisher')
    let longest = 0
    for (let n = 1; n <= 1000; n++) {
      const from = performance.now()
      if (qos === 0) client.send(publishPacket('f', payload))
      client.send(publishPacket(qos === 0 ? 'sync' : 'f', qos === 0 ? '' : payload, { qos: 1, messageId: n }))
      await client.next()
      longest = Math.max(longest, performance.now() - from)
    }
    client.end()
    return longest
  }

  it('of QoS 0 loses messages, counted; others lose none and publishers do not wait', async () => {
    await start()
    const frozen = await subscriber('frozen', 'f', 0)
    const healthy = await subscriber('healthy', 'f', 0)
    frozen.socket.pause()
    let received = 0
    const counting = (async () => {
      for (; received < 1000; received++) await healthy.next()
    })()
    expect(await publishMuch(0)).toBeLessThan(1000)
    await counting
    expect(broker.count('selvedge_mqtt_undelivered_total')).toBeGreaterThan(100)
    frozen.end()
  })

  it('of QoS 1 without a session is closed; others lose none', async () => {
    await start()
    const frozen = await subscriber('frozen', 'f', 1)
    const healthy = await subscriber('healthy', 'f', 1)
    frozen.socket.pause()
    const counting = (async () => {
      for (let n = 0; n < 1000; n++) {
        const { messageId } = await healthy.next()
        healthy.send({ cmd: 'puback', messageId } as never)
      }
    })()
    expect(await publishMuch(1)).toBeLessThan(1000)
    await counting
    await expect.poll(() => broker.server.stats().clients).toBe(1)
    frozen.socket.resume()
    await frozen.ended
  })

  it('with a session receives everything when it resumes, and costs no memory meanwhile', async () => {
    await start({ sessionBytesMax: 32 * 1024 * 1024 })
    const frozen = await subscriber('frozen', 'f', 1, false)
    frozen.socket.pause()
    expect(await publishMuch(1)).toBeLessThan(1000)
    expect(broker.server.stats()).toMatchObject({ sessions: 1, queued: 1000 })
    frozen.socket.resume()
    for (let n = 0; n < 1000; n++) {
      const { messageId } = await frozen.next()
      frozen.send({ cmd: 'puback', messageId } as never)
    }
    await expect.poll(() => broker.server.stats().queued).toBe(0)
  })

  it('is closed when it has read nothing for too long', async () => {
    await start({ stallMs: 1500 })
    const frozen = await subscriber('frozen', 'f', 0)
    frozen.socket.pause()
    await publishMuch(0)
    await expect.poll(() => broker.server.stats().clients).toBe(0)
    frozen.end()
  })
})

describe('a client that does not read what is sent to it', () => {
  it('is not read from either', async () => {
    await start()
    const client = await subscriber('deaf', 'd', 0)
    client.socket.pause()
    const total = 30_000
    const payload = Buffer.alloc(1000, 'x')
    for (let n = 1; n <= total; n++) client.send(publishPacket('d', payload, { qos: 1, messageId: n }))
    const taken = (): number => broker.count('selvedge_mqtt_publishes_total')
    for (let before = -1; before !== taken(); ) {
      before = taken()
      await new Promise((resolve) => setTimeout(resolve, 1000))
    }
    expect(taken()).toBeLessThan(total)
    client.socket.resume()
    await expect.poll(taken).toBe(total)
    client.end()
  })
})

/** Wraps the real door; it can be out of room, or have a full disk behind it. */
function troubledDoor(state: { full: boolean; disk: 'fine' | 'full' }) {
  let waiting: (() => void)[] = []
  return {
    wrapDoor: (door: Door): Door => ({
      ...door,
      submit(work: Work) {
        if (state.full) return false
        if (state.disk === 'fine') return door.submit(work)
        setTimeout(() => work.answer(new GatewayError('store.full', 'no space left on device')), 5)
        return true
      },
      whenRoom(action) {
        if (state.full) waiting.push(action)
        else door.whenRoom(action)
      },
    }),
    makeRoom() {
      state.full = false
      for (const action of waiting.splice(0)) action()
    },
    state,
    reset: () => {
      waiting = []
    },
  }
}

describe('a full door', () => {
  it('drops QoS 0, counted, and lets QoS 1 wait in order', async () => {
    const trouble = troubledDoor({ full: false, disk: 'fine' })
    await start({ wrapDoor: trouble.wrapDoor })
    const client = await connectRaw(broker.port, 'c')
    trouble.state.full = true
    client.send(
      Buffer.concat([
        generate(publishPacket('claimed/q', '1', { qos: 1, messageId: 1 })),
        generate(publishPacket('claimed/q', 'zero')),
        generate(publishPacket('claimed/q', '2', { qos: 1, messageId: 2 })),
      ]),
    )
    expect(await client.all(100)).toEqual([])
    expect(broker.count('selvedge_mqtt_dropped_total')).toBe(1)
    trouble.makeRoom()
    expect([await client.next(), await client.next()].map(({ messageId }) => messageId)).toEqual([1, 2])
    expect(broker.frames()).toEqual(['claimed/q 1', 'claimed/q 2'])
    client.end()
  })

  it('lets QoS 2 wait, and stores a message once that is re-sent over another connection', async () => {
    const trouble = troubledDoor({ full: false, disk: 'fine' })
    await start({ wrapDoor: trouble.wrapDoor })
    const receiver = await subscriber('r', 'claimed/#', 2)
    const packet = { qos: 2, messageId: 5 } as const
    const first = await connectRaw(broker.port, 'hurry', { clean: false })
    trouble.state.full = true
    first.send(publishPacket('claimed/hurry', 'x', packet))
    expect(await first.all(50)).toEqual([])
    const second = await connectRaw(broker.port, 'hurry', { clean: false })
    second.send(publishPacket('claimed/hurry', 'x', { ...packet, dup: true }))
    expect(await second.all(50)).toEqual([])
    trouble.makeRoom()
    expect(await second.next()).toMatchObject({ cmd: 'pubrec', messageId: 5 })
    expect((await receiver.all(100)).map(textOf)).toEqual(['claimed/hurry x qos2'])
    expect(broker.frames()).toEqual(['claimed/hurry x'])
    for (const one of [second, receiver]) one.end()
  })
})

const noSpace = new GatewayError('store.full', 'no space left on device')

function sendNumbers(client: RawClient, numbers: readonly number[]): void {
  const packets = numbers.map((n) => generate(publishPacket('claimed/h', `${n}`, { qos: 1, messageId: n })))
  client.send(Buffer.concat(packets))
}

describe('a full disk', () => {
  it('holds QoS 1 until it has room, and drops QoS 0, counted', async () => {
    let isFull = true
    await start({ refuse: async () => (isFull ? noSpace : undefined) })
    const client = await connectRaw(broker.port, 'c')
    client.send(publishPacket('claimed/h', 'zero'))
    for (let n = 1; n <= 3; n++) client.send(publishPacket('claimed/h', `${n}`, { qos: 1, messageId: n }))
    expect(await client.all(600)).toEqual([])
    isFull = false
    client.send(publishPacket('claimed/h', '4', { qos: 1, messageId: 4 }))
    const ids: (number | undefined)[] = []
    while (ids.length < 4) ids.push((await client.next()).messageId)
    expect(ids).toEqual([1, 2, 3, 4])
    expect(broker.frames()).toEqual([1, 2, 3, 4].map((n) => `claimed/h ${n}`))
    expect(broker.count('selvedge_mqtt_dropped_total')).toBe(1)
    expect(broker.lines.filter(({ event }) => event === 'mqtt.held')).toHaveLength(1)
    client.end()
  })

  it('lets no later message overtake, even if there is room by then', async () => {
    const numbers = Array.from({ length: 60 }, (_, n) => n + 1)
    let refusals = 0
    // While the group of the first forty is refused, the other messages arrive.
    await start({
      async refuse() {
        if (refusals++ > 0) return undefined
        sendNumbers(client, numbers.slice(40))
        await new Promise((later) => setTimeout(later, 100))
        return noSpace
      },
    })
    const client = await connectRaw(broker.port, 'c')
    sendNumbers(client, numbers.slice(0, 40))
    for (const messageId of numbers) expect(await client.next()).toMatchObject({ cmd: 'puback', messageId })
    expect(broker.frames()).toEqual(numbers.map((n) => `claimed/h ${n}`))
    client.end()
  })

  it('closes the connection without PUBACK after a while; messages that need no disk are delivered', async () => {
    const trouble = troubledDoor({ full: false, disk: 'full' })
    await start({ wrapDoor: trouble.wrapDoor, holdMs: 700 })
    const client = await connectRaw(broker.port, 'c')
    const other = await subscriber('other', 'live', 0)
    client.send(publishPacket('claimed/h', 'x', { qos: 1, messageId: 1 }))
    other.send(publishPacket('live', 'on', { qos: 1, messageId: 1 }))
    expect(textOf(await other.next())).toBe('live on qos0')
    await client.ended
    expect(await client.all(0)).toEqual([])
    expect(broker.frames()).toEqual([])
    const second = await connectRaw(broker.port, 'c')
    second.send(publishPacket('claimed/exact', 'y', { qos: 2, messageId: 2 }))
    await second.ended
    trouble.state.disk = 'fine'
    const third = await connectRaw(broker.port, 'c')
    third.send(publishPacket('claimed/exact', 'y', { qos: 2, messageId: 2, dup: true }))
    expect(await third.next()).toMatchObject({ cmd: 'pubrec', messageId: 2 })
    expect(broker.frames()).toEqual(['claimed/exact y'])
    for (const one of [third, other]) one.end()
  })
})

describe('ending', () => {
  it('acknowledges accepted messages and accepts no more', async () => {
    await start({ lingerMs: 200 })
    const client = await connectRaw(broker.port, 'c')
    for (let n = 1; n <= 20; n++) client.send(publishPacket('claimed/e', `${n}`, { qos: 1, messageId: n }))
    await expect.poll(() => broker.count('selvedge_mqtt_publishes_total')).toBe(20)
    await broker.server.close(3000)
    await client.ended
    const ids = (await client.all(0)).map(({ messageId }) => messageId)
    expect(ids).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
    expect(broker.frames()).toHaveLength(20)
  })
})

describe('a thousand absent sessions', () => {
  it('get their copies in small groups, so that no other work waits for a large one', async () => {
    const messagesOf = new Map<Stage, number>()
    await start({ wrapDoor: (door) => ({ ...door, submit: (work) => door.submit(seen(work, messagesOf)) }) })
    for (let n = 0; n < 1000; n += 50) {
      const batch = Array.from({ length: 50 }, (_, i) => subscriber(`absent-${n + i}`, 'many/#', 1, false))
      for (const client of await Promise.all(batch)) client.end()
    }
    await expect.poll(() => broker.server.stats().clients).toBe(0)
    const busy = await connectRaw(broker.port, 'busy')
    const other = await connectRaw(broker.port, 'other')
    busy.send(
      Buffer.concat(
        Array.from({ length: 60 }, (_, n) =>
          generate(publishPacket('many/x', `${n}`, { qos: 1, messageId: n + 1 })),
        ),
      ),
    )
    other.send(publishPacket('claimed/o', 'x', { qos: 1, messageId: 1 }))
    expect(await other.next()).toMatchObject({ cmd: 'puback' })
    for (let n = 1; n <= 60; n++) expect(await busy.next()).toMatchObject({ cmd: 'puback', messageId: n })
    expect(Math.max(...messagesOf.values())).toBeLessThanOrEqual(2)
    expect(broker.server.stats()).toMatchObject({ sessions: 1000, queued: 60_000 })
    const back = await connectRaw(broker.port, 'absent-777', { clean: false })
    expect((await back.all(300)).length).toBe(60)
  })
})

/** Wraps a work and records the group in which it is decided. */
function seen(work: Work, worksOf: Map<Stage, number>): Work {
  return {
    urgent: work.urgent,
    bytes: work.bytes,
    decide(stage) {
      worksOf.set(stage, (worksOf.get(stage) ?? 0) + 1)
      work.decide(stage)
    },
    answer: (error) => work.answer(error),
  }
}
