/**
 * Simulates a sensor that sticks for a while and then heals: it sends the value again and again that it had
 * when it stuck.
 */
import { type DemoDevice, messagesOf } from './demo-devices.ts'
import type { SitePorts } from './demo-publisher.ts'

/** The sensor: a device, and the field that sticks. */
export const stickingSensor = { device: 'greenhouse-2', field: 'temperature' }

const everyMs = 300_000
const beginsMs = 20_000
const endsMs = 60_000

/** Begin of the span in which the sensor is stuck at a time of the site, ms; undefined while it is well. */
export function stuckSince(startedAt: number, time: number): number | undefined {
  const elapsed = time - startedAt
  const within = elapsed % everyMs
  return elapsed >= 0 && within >= beginsMs && within < endsMs ? time - within + beginsMs : undefined
}

/** A device of which a field has the value of an instant. */
export const stuckAt = (device: DemoDevice, field: string, since: number): DemoDevice => ({
  ...device,
  fields: device.fields.map((one) => (one.name === field ? { ...one, at: () => one.at(since) } : one)),
})

/** Sends the measurements of a time. @throws peer.unavailable */
export function createStickingSensor(
  { publisher, print }: Pick<SitePorts, 'publisher' | 'print'>,
  device: DemoDevice,
  startedAt: number,
): (time: number) => Promise<void> {
  let wasStuck = false
  const { field } = stickingSensor

  return async (time) => {
    const since = stuckSince(startedAt, time)
    const isStuck = since !== undefined
    if (isStuck !== wasStuck)
      print(isStuck ? `${device.id} ${field} STICKS` : `${device.id} ${field} IS WELL AGAIN`)
    wasStuck = isStuck
    const sending = isStuck ? stuckAt(device, field, since) : device
    for (const { topic, payload } of messagesOf(sending, [time])) await publisher.publish(topic, payload)
  }
}
