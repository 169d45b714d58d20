/**
 * Simulates a radio link that fails periodically. The device buffers its measurements during the outage and
 * sends them when the link is back. Then it checks whether the gateway stored all of them.
 */
import { type DemoDevice, messagesOf } from './demo-devices.ts'
import { countStored } from './demo-history.ts'
import type { SitePorts } from './demo-publisher.ts'

const everyMs = 120_000
const beginsMs = 5000
const endsMs = 15_000

/** Whether the link is down at this time after the start of the site. */
export function isDown(elapsedMs: number): boolean {
  const within = elapsedMs % everyMs
  return within >= beginsMs && within < endsMs
}

export interface Delivered {
  readonly messages: number
  readonly acknowledged: number
  readonly values: number
  readonly stored: number
}

export function outageReport({ messages, acknowledged, values, stored }: Delivered): string {
  const missing = Math.max(values - stored, 0)
  const verdict =
    missing === 0 && acknowledged === messages ? 'nothing was lost' : `${missing} values are missing`
  return (
    `${messages} messages with ${values} values sent late, ` +
    `${acknowledged} messages acknowledged, ${stored} values stored: ${verdict}`
  )
}

/** Sends the measurements of a time, or buffers them while the link is down. @throws peer.unavailable */
export function createRadioLink(
  { publisher, httpUrl, print }: Pick<SitePorts, 'publisher' | 'httpUrl' | 'print'>,
  device: DemoDevice,
  startedAt: number,
): (time: number) => Promise<void> {
  /** Times of the buffered measurements, bounded by the length of an outage. */
  let buffered: number[] = []

  const send = async (times: readonly number[]): Promise<void> => {
    for (const time of times) {
      for (const { topic, payload } of messagesOf(device, [time])) await publisher.publish(topic, payload)
    }
  }
  const catchUp = async (): Promise<void> => {
    const times = buffered
    buffered = []
    await publisher.settled()
    const before = publisher.acknowledged()
    await send(times)
    await publisher.settled()
    const delivered = {
      messages: times.length,
      acknowledged: publisher.acknowledged() - before,
      values: times.length * device.fields.length,
      stored: await countStored(httpUrl, device, times),
    }
    print(`OUTAGE ENDS: ${device.id} has its radio link again; ${outageReport(delivered)}`)
  }

  return async (time) => {
    if (isDown(time - startedAt)) {
      if (buffered.length === 0)
        print(`OUTAGE BEGINS: ${device.id} lost its radio link; it buffers its measurements`)
      buffered.push(time)
      return
    }
    if (buffered.length > 0) await catchUp()
    await send([time])
  }
}
