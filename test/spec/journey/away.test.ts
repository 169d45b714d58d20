/**
 * Subscribers in trouble, against the real process: one that is away from the beginning, over a restart of the
 * gateway too, and one that answers 500 for a while. Each gets every match, in order per entity, soon after it is
 * well again, and nobody sends anything new meanwhile.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { calmTime } from '#test/kit/calm-time.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { connectRaw } from '#test/kit/mqtt.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver, type Received, type Receiver } from '#test/kit/receiver.ts'
import { notifications, publishAll, reading, subscribe } from './observations.ts'

const names = ['a:temperature', 'a:humidity', 'b:temperature', 'c:level']
const perName = 50
const awayMs = 4000

describe('a subscriber', () => {
  let folder: string
  let gateway: GatewayProcess
  let receiver: Receiver

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-away-'))
    gateway = await startGatewayProcess({ dataFolder: folder })
    receiver = await createReceiver()
    await subscribe(httpClient(gateway.httpUrl), receiver.url())
  })
  afterEach(async () => {
    await gateway.stop()
    await receiver.down()
    rmSync(folder, { recursive: true })
  })

  async function publishEverything(): Promise<void> {
    const device = await connectRaw(gateway.mqttPort, 'devices')
    const messages = Array.from({ length: perName }, (_, i) =>
      names.map((name) => ({ topic: 'senml/all', payload: reading(name, i, 1_700_000_000 + i) })),
    )
    await publishAll(device, messages.flat())
    device.end()
  }
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

  /** Every value of every entity, in order; repeats only where `mayRepeat` says so. */
  function expectEverything(taken: readonly Received[], mayRepeat = false): void {
    const told = notifications(taken)
    for (const name of names) {
      const values = told.filter(([, one]) => one === name).map(([value]) => value)
      const expected = Array.from({ length: perName }, (_, i) => i)
      expect([name, mayRepeat ? [...new Set(values)] : values]).toEqual([name, expected])
    }
  }
  const isComplete = () =>
    new Set(notifications(receiver.taken()).map(String)).size === names.length * perName

  it('that was away all the time gets every match, beginning within two seconds', async () => {
    await receiver.down()
    await publishEverything()
    await pause(awayMs)
    expect(receiver.received).toHaveLength(0)
    await receiver.up()
    const passed = calmTime()
    await vi.waitFor(() => expect(receiver.received).not.toHaveLength(0))
    expect(passed()).toBeLessThan(2000)
    await vi.waitFor(() => expect(isComplete()).toBe(true))
    expectEverything(receiver.taken())
  })

  it('that was away while the gateway was killed and started again gets every match, too', async () => {
    await receiver.down()
    await publishEverything()
    await gateway.kill()
    await gateway.stop()
    gateway = await startGatewayProcess({ dataFolder: folder })
    await pause(awayMs / 2)
    await receiver.up()
    const passed = calmTime()
    await vi.waitFor(() => expect(receiver.received).not.toHaveLength(0))
    expect(passed()).toBeLessThan(2000)
    await vi.waitFor(() => expect(isComplete()).toBe(true))
    expectEverything(receiver.taken())
  })

  it('that answers 500 for a while gets every match, beginning within two seconds of its being well', async () => {
    receiver.answer(() => 500)
    await publishEverything()
    await pause(awayMs)
    expect(receiver.received.length).toBeGreaterThan(1)
    expect(receiver.taken()).toHaveLength(0)
    receiver.answer(() => 204)
    const passed = calmTime()
    await vi.waitFor(() => expect(receiver.taken()).not.toHaveLength(0))
    expect(passed()).toBeLessThan(2000)
    await vi.waitFor(() => expect(isComplete()).toBe(true))
    expectEverything(receiver.taken())
  })

  it('that goes away in the middle of it misses nothing', async () => {
    receiver.answer(() => pause(5).then(() => 204))
    await publishEverything()
    await vi.waitFor(() => expect(receiver.taken().length).toBeGreaterThan(20), { interval: 5 })
    await receiver.down()
    await pause(awayMs / 2)
    await receiver.up()
    await vi.waitFor(() => expect(isComplete()).toBe(true))
    expectEverything(receiver.taken(), true)
  })
})
