/**
 * Consumers of a stream and a gateway that is killed between and during their confirmations: every
 * acknowledged write is notified, in order, and no notification with an acknowledged confirmation is sent
 * again.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const path = '/ngsi-ld/v1/subscriptions/urn:x:s'
const json = { 'Content-Type': 'application/json' }
let dataFolder: string
let gateway: GatewayProcess
beforeEach(async () => {
  dataFolder = mkdtempSync(join(tmpdir(), 'selvedge-kill-'))
  gateway = await startGatewayProcess({ dataFolder })
  const subscription = {
    id: 'urn:x:s',
    type: 'Subscription',
    entities: [{ type: 'Room' }],
    notification: { endpoint: { uri: 'urn:selvedge:stream' }, format: 'simplified' },
  }
  const init = { method: 'POST', headers: json, body: JSON.stringify(subscription) }
  expect((await fetch(`${gateway.httpUrl}/ngsi-ld/v1/subscriptions`, init)).status).toBe(201)
})
afterEach(async () => {
  await gateway.stop()
  rmSync(dataFolder, { recursive: true, force: true })
})

async function killAndStart(): Promise<void> {
  await gateway.kill()
  gateway = await startGatewayProcess({ dataFolder })
}

/** True if the write was acknowledged. */
async function write(t: number): Promise<boolean> {
  const body = JSON.stringify([{ id: 'urn:x:r', type: 'Room', t: { type: 'Property', value: t } }])
  const init = { method: 'POST', headers: json, body }
  return fetch(`${gateway.httpUrl}/ngsi-ld/v1/entityOperations/upsert`, init).then(
    ({ ok }) => ok,
    () => false,
  )
}

interface Told {
  readonly id: string
  readonly t: number
}

/** Consumes a WebSocket until it is closed or the gateway ends. */
async function listen(): Promise<{ told: Told[]; confirm(id: string): void; end(): void }> {
  const told: Told[] = []
  const socket = new WebSocket(`${gateway.httpUrl.replace('http', 'ws')}${path}/notifications`)
  socket.on('error', () => undefined)
  socket.on('message', (data: Buffer) => {
    const { id, notification } = JSON.parse(data.toString()) as {
      id: string
      notification: { data: [{ t: number }] }
    }
    told.push({ id, t: notification.data[0].t })
  })
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  return {
    told,
    confirm: (id) => socket.send(JSON.stringify({ confirmed: id })),
    end: () => socket.terminate(),
  }
}

/** The notified numbers without repetition, in the order in which they were first sent. */
const firsts = (told: readonly Told[]): number[] => [...new Set(told.map(({ t }) => t))]

it('a consumer resumes after its last confirmation, whether it or the gateway was killed', async () => {
  for (let t = 1; t <= 5; t++) expect(await write(t)).toBe(true)
  const first = await listen()
  await expect.poll(() => first.told.map(({ t }) => t)).toEqual([1, 2, 3, 4, 5])
  const until = first.told[2]!.id
  const confirmed = await fetch(`${gateway.httpUrl}${path}/notifications?until=${until}`, {
    method: 'DELETE',
  })
  expect(confirmed.status).toBe(204)
  await killAndStart()
  const second = await listen()
  await expect.poll(() => second.told).toEqual(first.told.slice(3))
  second.end()
  const third = await listen()
  await write(6)
  await expect.poll(() => third.told.map(({ t }) => t)).toEqual([4, 5, 6])
  expect(third.told.slice(0, 2)).toEqual(first.told.slice(3))
  third.end()
})

it('every acknowledged write is notified in order, despite kills during writes, notifications and confirmations', async () => {
  const acknowledged: number[] = []
  const all: Told[] = []
  let t = 0
  for (let round = 0; round < 4; round++) {
    const consumer = await listen()
    const before = acknowledged.length
    let kill: Promise<unknown> | undefined
    let seen = 0
    for (let isUp = true; isUp; ) {
      isUp = await write(++t)
      if (isUp) acknowledged.push(t)
      if (acknowledged.length > before + 5) kill ??= sleep(60 + 90 * round).then(() => gateway.kill())
      for (const { id } of consumer.told.slice(seen)) if (++seen % 3 === 0) consumer.confirm(id)
    }
    await kill
    consumer.end()
    all.push(...consumer.told)
    gateway = await startGatewayProcess({ dataFolder })
  }
  const last = await listen()
  await write(++t)
  acknowledged.push(t)
  await expect.poll(() => last.told.at(-1)?.t).toBe(t)
  all.push(...last.told)
  last.end()
  const told = firsts(all)
  expect(told).toEqual(told.toSorted((a, b) => a - b))
  expect(acknowledged.filter((one) => !told.includes(one))).toEqual([])
  expect(acknowledged.length).toBeGreaterThan(20)
})
