/**
 * The gateway's own downtime in a real process: a gap that the gateway caused is no dropout of a sensor, and a
 * gap of the sensor is one.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createFaultSite, patience } from './stuck-site.ts'

// A busy machine must not make a sensor silent by the clock.
const site = createFaultSite({ SELVEDGE_LIMITS: 'faultsSilenceMinMs=600000' })
beforeAll(site.start)
afterAll(site.end)

/** Silence of three intervals is a dropout: far longer than a busy machine delays a message. */
const intervalMs = 2000
/** Samples that vary, the last of them at a time. */
const until = (end: number, count: number): (readonly [time: number, value: number])[] =>
  Array.from({ length: count }, (_, i) => [end - (count - i) * intervalMs, 20 + (i % 7)] as const)
const classes = async (device: string) =>
  (await site.faults(device)).map((one) => one['urn:selvedge:ns:class']!.value)

async function begin(device: string, end: number): Promise<void> {
  await site.publish(device, until(end, 100))
  await vi.waitFor(async () => expect(await site.state(device)).toBe('normal'), patience)
}

it('reports a dropout of a sensor that was silent by itself', async () => {
  const now = Date.now()
  await begin('b', now - 400_000)
  await site.publish('b', until(now, 5))
  await vi.waitFor(async () => expect(await classes('b')).toEqual(['dropout']), patience)
})

it('reports none of a sensor whose gateway was killed and started later', async () => {
  await begin('a', Date.now())
  // From now on the device sends a sample per interval, and none while the gateway is away.
  const device = site.device('a', intervalMs, (i) => 20 + (i % 7))
  await device.sent(1)
  await site.killAndStart(4 * intervalMs)
  await device.sent(1)
  await device.end()
  // The error code marks the end of what is judged.
  await site.publish('a', [[Date.now(), -999]])
  await vi.waitFor(async () => expect(await classes('a')).toContain('sentinel'), patience)
  expect(await classes('a')).toEqual(['sentinel'])
})
