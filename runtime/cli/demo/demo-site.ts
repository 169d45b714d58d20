/**
 * The process of the site: devices that publish over MQTT, and a person's hand that tells by HTTP where the ones are
 * that cannot say so themselves. It knows the gateway by its two public ports only. Simulated, it first fills in the
 * last day, then goes on with the present; replayed, it keeps the times of the record and runs at a chosen speed.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { Position, Sample } from '#cli/data/series.ts'
import type { Recording } from '#cli/data/series-folder.ts'
import { ask } from '#cli/gateway/gateway-client.ts'
import { siteId } from '#intake/site-ids.ts'
import { type DemoDevice, demoDevices, messagesOf, weakLink } from './demo-devices.ts'
import { stuckSensors } from './demo-history.ts'
import { createRadioLink } from './demo-outage.ts'
import type { Publisher, SitePorts } from './demo-publisher.ts'

const pastMs = 24 * 3_600_000
const pastStepMs = 10 * 60_000
const staleMs = 3 * 24 * 3_600_000
const tickMs = 100

/** Settles when the signal comes. @throws peer.unavailable when the gateway goes away. */
export async function simulate(ports: SitePorts): Promise<void> {
  const { publisher, clock, tell, signal } = ports
  const start = clock.now()
  await leaveStaleValue(ports, start)
  await fillIn(ports, start)
  tell(
    `${demoDevices.length} devices, their last 24 hours filled in within ${((clock.now() - start) / 1000).toFixed(1)} s`,
  )
  for (const line of await stuckSensors(ports.httpUrl, demoDevices, { from: start - pastMs, to: start }))
    tell(line)
  for (const device of demoDevices) {
    if (device.speaks === 'senml')
      await tellPlace(
        ports,
        device.id,
        device.fields.map(({ name }) => name),
        device.place,
      )
  }
  const due = new Map(demoDevices.map((device, i) => [device, clock.now() + i * tickMs]))
  const radio = createRadioLink(ports, demoDevices.find(({ id }) => id === weakLink)!, clock.now())
  while (!signal.aborted) {
    const time = clock.now()
    for (const [device, at] of due) {
      if (at > time) continue
      due.set(device, Math.max(at + device.everySeconds * 1000, time))
      if (device.id === weakLink) await radio(time)
      else if (!device.isSilent(time)) await send(publisher, device, [time])
    }
    await pause(tickMs, undefined, { signal }).catch(() => undefined)
  }
}

/** The one message of a logger whose battery is empty; the broker keeps it for everybody who comes later. */
async function leaveStaleValue({ publisher }: SitePorts, start: number): Promise<void> {
  for (const device of demoDevices.filter(({ id }) => id === 'meadow-logger')) {
    for (const { topic, payload } of messagesOf(device, [start - staleMs])) {
      await publisher.publish(topic, payload, { retain: true })
    }
  }
}

async function fillIn({ publisher }: SitePorts, start: number): Promise<void> {
  const times = Array.from({ length: pastMs / pastStepMs }, (_, i) => start - pastMs + i * pastStepMs)
  for (const device of demoDevices) {
    await send(
      publisher,
      device,
      times.filter((time) => !device.isSilent(time)),
    )
  }
  await publisher.settled()
}

async function send(publisher: Publisher, device: DemoDevice, times: readonly number[]): Promise<void> {
  for (const { topic, payload } of messagesOf(device, times)) await publisher.publish(topic, payload)
}

export interface Replay extends Recording {
  /** Seconds of the record per second; Infinity for as fast as the gateway takes it. */
  readonly speed: number
}

/** Publishes samples in the order of their times. Settles when all are acknowledged, or the signal comes. */
export async function replay(ports: SitePorts, { samples, places, skipped, speed }: Replay): Promise<void> {
  const { publisher, clock, tell, signal } = ports
  for (const line of skipped) tell(`left out ${line}`)
  const devices = new Set(samples.map(({ device }) => device)).size
  tell(`${devices} devices, ${samples.length} messages, ${places.size} places`)
  const known = new Map<string, Set<string>>()
  const start = clock.now()
  for (const sample of samples) {
    const wait = start + (sample.at - samples[0]!.at) / speed - clock.now()
    if (wait > 1) await pause(wait, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) break
    await publishSample(publisher, sample)
    const place = places.get(sample.device)
    const fields = known.get(sample.device) ?? new Set()
    const fresh = sample.values.map(([name]) => name).filter((name) => !fields.has(name))
    if (fresh.length === 0) continue
    known.set(sample.device, new Set([...fields, ...fresh]))
    if (place === undefined) continue
    await publisher.settled()
    await tellPlace(ports, sample.device, fresh, place)
  }
  await publisher.settled()
  tell(signal.aborted ? 'stopped' : 'all has been replayed; the gateway stays')
}

/** SenML units of quantities whose names leave no doubt. */
const knownUnits: Readonly<Record<string, string>> = {
  temperature: 'Cel',
  temp: 'Cel',
  humidity: '%RH',
  pm25: 'ug/m3',
  no2: 'ug/m3',
  o3: 'ug/m3',
}

function publishSample(publisher: Publisher, { at, device, values }: Sample): Promise<void> {
  const records = values.map(([name, value], i) => ({
    ...(i === 0 && { bn: `${device}:`, bt: at / 1000 }),
    n: name,
    ...(knownUnits[name.toLowerCase()] !== undefined && { u: knownUnits[name.toLowerCase()] }),
    v: value,
  }))
  return publisher.publish(`senml/${device.replace(/[/+#]/g, '-')}`, JSON.stringify(records))
}

/** Location of a Platform and of its sensors, as a person would add it. */
async function tellPlace(
  { httpUrl, tell }: SitePorts,
  device: string,
  fields: readonly string[],
  place: Position,
): Promise<void> {
  const location = { type: 'GeoProperty', value: { type: 'Point', coordinates: place } }
  const ids = [siteId('Platform', device), ...fields.map((field) => siteId('Sensor', device, field))]
  for (const id of ids) {
    const url = `${httpUrl}/ngsi-ld/v1/entities/${encodeURIComponent(id)}/attrs`
    const { status, text } = await ask(url, { method: 'POST', body: { location } })
    if (status >= 300) tell(`the place of ${id} was not taken: ${status} ${text}`)
  }
}
