/**
 * The process of the site: devices publish over MQTT, and locations that devices cannot send are added over
 * HTTP. It accesses the gateway only by its two public ports. A simulated site first sends the values of the
 * last day, then live values. A replay keeps the recorded times and runs at a chosen speed.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { LonLat, Sample } from '#cli/data/series.ts'
import type { Recording } from '#cli/data/series-folder.ts'
import { sendRequest } from '#cli/gateway/gateway-client.ts'
import { siteId } from '#intake/site-ids.ts'
import { type DemoDevice, demoDevices, messagesOf, weakLink } from './demo-devices.ts'
import { stuckSensors } from './demo-history.ts'
import { createRadioLink } from './demo-outage.ts'
import type { DemoPublisher, SitePorts } from './demo-publisher.ts'
import { createStickingSensor, stickingSensor } from './demo-sticking.ts'

const pastMs = 24 * 3_600_000
const pastStepMs = 10 * 60_000
const staleMs = 3 * 24 * 3_600_000
const tickMs = 100

/** Runs until the signal is aborted. @throws peer.unavailable if the connection to the gateway ends. */
export async function simulate(ports: SitePorts): Promise<void> {
  const { publisher, clock, print, signal } = ports
  const start = clock.now()
  await publishStaleValue(ports, start)
  await publishPast(ports, start)
  print(
    `${demoDevices.length} devices, their last 24 hours sent in ${((clock.now() - start) / 1000).toFixed(1)} s`,
  )
  for (const line of await stuckSensors(ports.httpUrl, demoDevices, { from: start - pastMs, to: start }))
    print(line)
  for (const device of demoDevices) {
    if (device.speaks === 'senml')
      await addLocation(
        ports,
        device.id,
        device.fields.map(({ name }) => name),
        device.place,
      )
  }
  const due = new Map(demoDevices.map((device, i) => [device, clock.now() + i * tickMs]))
  const radio = createRadioLink(ports, demoDevices.find(({ id }) => id === weakLink)!, clock.now())
  const sticking = createStickingSensor(
    ports,
    demoDevices.find(({ id }) => id === stickingSensor.device)!,
    clock.now(),
  )
  while (!signal.aborted) {
    const time = clock.now()
    for (const [device, at] of due) {
      if (at > time) continue
      due.set(device, Math.max(at + device.everySeconds * 1000, time))
      if (device.id === weakLink) await radio(time)
      else if (device.id === stickingSensor.device) await sticking(time)
      else if (!device.isSilent(time)) await send(publisher, device, [time])
    }
    await pause(tickMs, undefined, { signal }).catch(() => undefined)
  }
}

/** Publishes the only message of a logger with an empty battery, as a retained message. */
async function publishStaleValue({ publisher }: SitePorts, start: number): Promise<void> {
  for (const device of demoDevices.filter(({ id }) => id === 'meadow-logger')) {
    for (const { topic, payload } of messagesOf(device, [start - staleMs])) {
      await publisher.publish(topic, payload, { retain: true })
    }
  }
}

async function publishPast({ publisher }: SitePorts, start: number): Promise<void> {
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

async function send(publisher: DemoPublisher, device: DemoDevice, times: readonly number[]): Promise<void> {
  for (const { topic, payload } of messagesOf(device, times)) await publisher.publish(topic, payload)
}

export interface Replay extends Recording {
  /** Recorded seconds per second; Infinity for as fast as possible. */
  readonly speed: number
}

/** Publishes samples in time order. Resolves when all are acknowledged, or the signal is aborted. */
export async function replay(ports: SitePorts, { samples, places, skipped, speed }: Replay): Promise<void> {
  const { publisher, clock, print, signal } = ports
  for (const line of skipped) print(`skipped ${line}`)
  const devices = new Set(samples.map(({ device }) => device)).size
  print(`${devices} devices, ${samples.length} messages, ${places.size} places`)
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
    await addLocation(ports, sample.device, fresh, place)
  }
  await publisher.settled()
  print(signal.aborted ? 'stopped' : 'replay complete; the gateway keeps running')
}

/** SenML units of quantities with unambiguous names. */
const knownUnits: Readonly<Record<string, string>> = {
  temperature: 'Cel',
  temp: 'Cel',
  humidity: '%RH',
  pm25: 'ug/m3',
  no2: 'ug/m3',
  o3: 'ug/m3',
}

function publishSample(publisher: DemoPublisher, { at, device, values }: Sample): Promise<void> {
  const records = values.map(([name, value], i) => ({
    ...(i === 0 && { bn: `${device}:`, bt: at / 1000 }),
    n: name,
    ...(knownUnits[name.toLowerCase()] !== undefined && { u: knownUnits[name.toLowerCase()] }),
    v: value,
  }))
  return publisher.publish(`senml/${device.replace(/[/+#]/g, '-')}`, JSON.stringify(records))
}

/** Adds the location to a Platform and its sensors, as an operator would. */
async function addLocation(
  { httpUrl, print }: SitePorts,
  device: string,
  fields: readonly string[],
  place: LonLat,
): Promise<void> {
  const location = { type: 'GeoProperty', value: { type: 'Point', coordinates: place } }
  const ids = [siteId('Platform', device), ...fields.map((field) => siteId('Sensor', device, field))]
  for (const id of ids) {
    const url = `${httpUrl}/ngsi-ld/v1/entities/${encodeURIComponent(id)}/attrs`
    const { status, text } = await sendRequest(url, { method: 'POST', body: { location } })
    if (status >= 300) print(`the location of ${id} was rejected: ${status} ${text}`)
  }
}
