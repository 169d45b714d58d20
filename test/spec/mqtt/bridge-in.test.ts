/**
 * The bridge-in against a real Mosquitto: acknowledged frames are on disk here, whichever process dies in
 * between.
 */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { GatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import { type BridgeIn, type BridgeInSettings, createBridgeIn } from '#mqtt/bridge-in/bridge-in.ts'
import { type OpenDoor, openDoor, type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import { createMosquitto, run } from '#test/kit/mosquitto.ts'
import { committedFrames, ledger } from '#test/kit/mqtt.ts'
import type { PeerServer } from '#test/kit/peer-server.ts'
import { describePeer } from '#test/kit/peers.ts'

describePeer('mosquitto', 'the bridge-in', (path) => {
  let file: TemporaryDatabase
  let opened: OpenDoor
  let mosquitto: PeerServer
  const bridges: BridgeIn[] = []
  const lines: string[] = []

  beforeEach(async () => {
    file = temporaryDatabase()
    opened = await openDoor(file.file, { lingerMs: 2 })
    mosquitto = await createMosquitto(path, ['max_inflight_messages 0', 'max_queued_messages 10000'])
    await mosquitto.start()
    lines.length = 0
  })

  afterEach(async () => {
    for (const bridge of bridges.splice(0)) await bridge.close(100)
    await opened.close()
    await mosquitto.remove()
    file.remove()
  })

  function open(
    door: Pick<Door, 'submit' | 'whenRoom'> = opened.door,
    settings: Partial<BridgeInSettings> = {},
  ) {
    const metrics = createMetrics()
    const bridge = createBridgeIn(
      {
        door,
        intake: ledger(opened.database),
        clock: systemClock,
        log: createLog({ level: 'debug', clock: systemClock, write: (line) => lines.push(line) }),
        metrics,
        random: () => 0.5,
      },
      {
        url: `mqtt://127.0.0.1:${mosquitto.port}`,
        topics: ['claimed/#', 'other/+'],
        clientId: 'selvedge-test',
        retryMs: 50,
        ...settings,
      },
    )
    bridges.push(bridge)
    return { bridge, metrics }
  }

  const publish = (...args: string[]) =>
    run('mosquitto_pub', ['-p', String(mosquitto.port), '-q', '1', ...args])
  const frames = () => committedFrames(opened.database)
  const subscribed = () => expect.poll(() => lines.join('')).toContain('bridge-in.connected')
  const settled = async (): Promise<void> => {
    await subscribed()
    await new Promise((resolve) => setTimeout(resolve, 200))
  }

  it('stores frames on disk and acknowledges them', async () => {
    const { bridge } = open()
    await settled()
    await publish('-t', 'claimed/a', '-m', 'x')
    await publish('-t', 'claimed/b', '-m', 'y', '-q', '2')
    await publish('-t', 'claimed/c', '-m', 'z', '-q', '0')
    await expect.poll(frames).toEqual(['claimed/a x', 'claimed/b y', 'claimed/c z'])
    await expect.poll(bridge.stats).toEqual({ connected: true, inFlight: 0, acknowledged: 2 })
  })

  it('marks only messages delivered as retained', async () => {
    await publish('-t', 'claimed/old', '-m', 'kept', '-r')
    open()
    await expect.poll(frames).toEqual(['claimed/old kept retained'])
    await publish('-t', 'claimed/old', '-m', 'news', '-r')
    await expect.poll(frames).toEqual(['claimed/old kept retained', 'claimed/old news'])
  })

  it('acknowledges frames that no bridge claims', async () => {
    const { bridge, metrics } = open()
    await settled()
    await publish('-t', 'other/x', '-m', 'nobody')
    await expect.poll(() => bridge.stats().acknowledged).toBe(1)
    expect(metrics.counter('selvedge_bridge_in_frames_total').value).toBe(1)
    expect(frames()).toEqual([])
  })

  it('receives again the frames that were not on disk when it ended', async () => {
    const stuck: Pick<Door, 'submit' | 'whenRoom'> = { submit: () => true, whenRoom: () => undefined }
    const { bridge } = open(stuck)
    await settled()
    for (const n of [1, 2, 3]) await publish('-t', 'claimed/again', '-m', `${n}`)
    await expect.poll(() => bridge.stats().inFlight).toBe(3)
    await bridge.close(50)
    await publish('-t', 'claimed/again', '-m', '4')
    open()
    await expect
      .poll(frames)
      .toEqual([...[1, 2, 3].map((n) => `claimed/again ${n} resent`), 'claimed/again 4'])
  })

  it('accepts no more frames than its limit before they are on disk', async () => {
    const waiting: Parameters<Door['submit']>[0][] = []
    const slow: Pick<Door, 'submit' | 'whenRoom'> = {
      submit: (work) => waiting.push(work) > 0,
      whenRoom: () => undefined,
    }
    const { bridge } = open(slow)
    await settled()
    const numbers = Array.from({ length: 400 }, (_, n) => `${n}`)
    const port = String(mosquitto.port)
    await run('mosquitto_pub', ['-p', port, '-q', '1', '-t', 'claimed/n', '-l'], numbers.join('\n'))
    await expect.poll(() => bridge.stats().inFlight).toBe(256)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(waiting.length).toBe(256)
    for (let n = 0; n < 256; n++) opened.door.submit(waiting[n]!)
    await expect.poll(() => waiting.length).toBe(400)
    for (const work of waiting.slice(256)) opened.door.submit(work)
    await expect.poll(() => bridge.stats().acknowledged).toBe(400)
    expect(frames()).toEqual(numbers.map((n) => `claimed/n ${n}`))
  })

  it('holds a frame while the disk is full', async () => {
    let isFull = true
    const troubled: Pick<Door, 'submit' | 'whenRoom'> = {
      ...opened.door,
      submit(work) {
        if (!isFull) return opened.door.submit(work)
        setTimeout(() => work.answer(new GatewayError('store.full', 'no space left')), 5)
        return true
      },
    }
    const { bridge } = open(troubled)
    await settled()
    await publish('-t', 'claimed/full', '-m', 'x')
    await expect.poll(() => bridge.stats().inFlight).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(bridge.stats()).toMatchObject({ inFlight: 1, acknowledged: 0 })
    isFull = false
    await expect.poll(frames).toEqual(['claimed/full x'])
    await expect.poll(() => bridge.stats().acknowledged).toBe(1)
  })

  it('reconnects after Mosquitto was killed, and loses nothing that Mosquitto kept', async () => {
    const { bridge } = open()
    await settled()
    await publish('-t', 'claimed/k', '-m', 'before')
    await expect.poll(() => bridge.stats().acknowledged).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 300))
    await mosquitto.kill('SIGKILL')
    await expect.poll(() => bridge.stats().connected).toBe(false)
    await mosquitto.start()
    await expect.poll(() => bridge.stats().connected).toBe(true)
    await publish('-t', 'claimed/k', '-m', 'after')
    await expect.poll(frames).toEqual(['claimed/k before', 'claimed/k after'])
    // While disconnected, new messages are queued at Mosquitto, even if it is killed.
    await bridge.close(100)
    await publish('-t', 'claimed/k', '-m', 'meanwhile')
    await new Promise((resolve) => setTimeout(resolve, 300))
    await mosquitto.kill('SIGKILL')
    await mosquitto.start()
    open()
    await expect.poll(frames).toEqual(['claimed/k before', 'claimed/k after', 'claimed/k meanwhile'])
  })

  it('waits for a broker that is not running yet', async () => {
    await mosquitto.kill()
    const { bridge } = open()
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(bridge.stats().connected).toBe(false)
    await mosquitto.start()
    await expect.poll(() => bridge.stats().connected).toBe(true)
  })

  it('increases the pause between attempts', async () => {
    await mosquitto.kill()
    open(opened.door, { retryMs: 20 })
    const attempts = (): number => lines.filter((line) => line.includes('bridge-in.refused')).length
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(attempts()).toBeLessThan(10)
    await expect.poll(attempts).toBeGreaterThan(3)
  })

  it('ignores messages that its session subscribes to but its settings no longer name', async () => {
    const { bridge } = open()
    await settled()
    await bridge.close(100)
    open(opened.door, { topics: ['claimed/b'] })
    await settled()
    await publish('-t', 'claimed/a', '-m', 'no')
    await publish('-t', 'claimed/b', '-m', 'yes')
    await expect.poll(frames).toEqual(['claimed/b yes'])
  })
})
