/**
 * The simulated site: a dozen devices with places and measurements as pure functions of time. An instant
 * always has one value, so that simulated history and live values agree. Working sensors vary by more than
 * their last digit, so that none seems to stick. One device is silent at night, one
 * has a failing radio link and one a stuck sensor. Another left only an old retained value.
 */
import type { LonLat } from '#cli/data/series.ts'

export interface DemoField {
  readonly name: string
  /** SenML unit. */
  readonly unit: string
  /** UN/CEFACT common code, for devices whose payloads contain no units. */
  readonly unitCode: string
  /** Decimal places. */
  readonly digits: number
  at(time: number): number
}

export interface DemoDevice {
  readonly id: string
  readonly name: string
  /** Payload format: SenML packs, or plain JSON. */
  readonly speaks: 'senml' | 'json'
  readonly place: LonLat
  readonly everySeconds: number
  readonly fields: readonly DemoField[]
  /** Whether the device sends nothing at a time. */
  isSilent(time: number): boolean
}

const hour = 3_600_000
const day = 24 * hour

/** A daily cycle with its maximum at an hour (UTC), plus noise. */
function daily(seed: number, mean: number, swing: number, peakHour: number, noise: number) {
  return (time: number): number =>
    mean + swing * Math.cos((2 * Math.PI * (time - peakHour * hour)) / day) + noise * noiseAt(time, seed)
}

/**
 * A daily cycle of an air temperature. Wind and clouds change all of them at the same time, so sensors vary
 * with their neighbours within minutes, too. Both periods divide a day.
 */
function airy(seed: number, mean: number, swing: number, peakHour: number) {
  const own = daily(seed, mean, swing, peakHour, 0.3)
  const wave = (time: number, seconds: number): number => Math.sin((2 * Math.PI * time) / (seconds * 1000))
  return (time: number): number => own(time) + 0.4 * wave(time, 144) + 0.25 * wave(time, 36)
}

/** Light between 06:00 and 18:00. */
function sunny(seed: number, most: number) {
  return (time: number): number => {
    const light = Math.sin((2 * Math.PI * (time - 6 * hour)) / day)
    const clouds = 0.12 * noiseAt(Math.floor(time / 60_000), seed) + 0.03 * noiseAt(time, seed)
    return Math.max(0, most * light * (0.85 + clouds))
  }
}

/** Uniform noise from -1 to 1, deterministic for time and seed (an integer hash). */
function noiseAt(time: number, seed: number): number {
  let h = Math.imul((Math.floor(time) % 0x7fffffff) ^ Math.imul(seed, 0x9e3779b1), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return ((h ^ (h >>> 16)) >>> 0) / 0x80000000 - 1
}

const field = (
  name: string,
  unit: string,
  unitCode: string,
  digits: number,
  at: DemoField['at'],
): DemoField => ({
  name,
  unit,
  unitCode,
  digits,
  at,
})

const temperature = (at: DemoField['at']) => field('temperature', 'Cel', 'CEL', 1, at)
const humidity = (at: DemoField['at']) => field('humidity', '%RH', 'P1', 1, at)
const carbonDioxide = (at: DemoField['at']) => field('co2', 'ppm', '59', 0, at)
const moisture = (at: DemoField['at']) => field('moisture', '/100', 'P1', 1, at)

/** Silent from 02:00 to 05:00 (UTC). */
const fallsSilent = (time: number): boolean => {
  const hourOfDay = Math.floor((time % day) / hour)
  return hourOfDay >= 2 && hourOfDay < 5
}

const never = (): boolean => false

const device = (
  id: string,
  name: string,
  speaks: DemoDevice['speaks'],
  place: LonLat,
  everySeconds: number,
  fields: readonly DemoField[],
  isSilent: DemoDevice['isSilent'] = never,
): DemoDevice => ({ id, name, speaks, place, everySeconds, fields, isSilent })

/** Id of the device whose radio link fails (demo-outage.ts). */
export const weakLink = 'soil-north'

export const demoDevices: readonly DemoDevice[] = [
  device('greenhouse-1', 'Greenhouse, tomatoes', 'senml', [8.0012, 52.0007], 2, [
    temperature(airy(1, 23, 5, 14)),
    humidity(daily(2, 66, -12, 14, 1.5)),
    carbonDioxide(daily(3, 520, -110, 13, 15)),
  ]),
  device('greenhouse-2', 'Greenhouse, seedlings', 'senml', [8.0016, 52.0007], 2, [
    temperature(airy(4, 25, 3, 14)),
    humidity(daily(5, 72, -8, 14, 1.5)),
    carbonDioxide(daily(6, 480, -80, 13, 15)),
  ]),
  device('weather-mast', 'Weather mast', 'senml', [8.0002, 52.0021], 3, [
    temperature(airy(7, 13, 6, 15)),
    humidity(daily(8, 70, -18, 15, 1)),
    field(
      'pressure',
      'hPa',
      'A97',
      1,
      (time) => 1013 + 8 * Math.sin(time / (3.1 * day)) + 0.3 * noiseAt(time, 9),
    ),
    field('wind', 'm/s', 'MTS', 1, (time) => Math.abs(daily(10, 3.5, 2, 15, 1.5)(time))),
  ]),
  device(weakLink, 'Soil probe, north field, on a weak radio link', 'senml', [8.0031, 52.0043], 2, [
    moisture(daily(11, 31, -2, 16, 0.3)),
    temperature(daily(12, 12, 2, 17, 0.3)),
  ]),
  device(
    'soil-south',
    'Soil probe, south field; its battery is empty at night',
    'senml',
    [8.0027, 51.9968],
    5,
    [moisture(daily(13, 27, -2, 16, 0.3)), temperature(daily(14, 12.5, 2, 17, 0.3))],
    fallsSilent,
  ),
  device('cold-store', 'Cold store; its humidity sensor is stuck', 'senml', [8.0008, 51.9998], 4, [
    temperature((time) => 3.5 + ((time / (40 * 60_000)) % 1) * 1.6 + 0.3 * noiseAt(time, 15)),
    humidity(() => 87.3),
  ]),
  device('water-tank', 'Rain water tank', 'senml', [8.0019, 51.9993], 5, [
    field('level', 'm', 'MTR', 2, daily(16, 1.8, 0.4, 6, 0.03)),
    field('flow', 'l/s', 'G51', 2, (time) => Math.max(0, daily(17, 0.3, 0.5, 7, 0.05)(time))),
  ]),
  device('parking', 'Parking at the farm shop', 'json', [7.9991, 52.0002], 5, [
    field('occupied', '', 'C62', 0, (time) => Math.max(0, daily(18, 14, 16, 14, 2)(time))),
  ]),
  device('energy-meter', 'Energy meter', 'json', [8.0001, 52.0001], 2, [
    field('power', 'W', 'WTT', 0, daily(19, 4200, 1900, 18, 250)),
    field('energy', 'Wh', 'WHR', 0, (time) => (time - Date.UTC(2024, 0, 1)) / 900),
  ]),
  device('solar-roof', 'Solar roof', 'json', [8.0005, 52.0003], 3, [
    field('power', 'W', 'WTT', 0, sunny(20, 9600)),
    field('irradiance', 'W/m2', 'D54', 0, sunny(20, 870)),
  ]),
  device('barn-air', 'Air in the barn', 'json', [8.0023, 52.0012], 4, [
    field('ammonia', 'ppm', '59', 1, daily(21, 9, 3, 3, 0.6)),
    temperature(airy(22, 17, 3, 15)),
  ]),
  device(
    'meadow-logger',
    'Logger in the meadow; its battery is empty',
    'senml',
    [8.0052, 52.0031],
    60,
    [temperature(daily(23, 11, 5, 15, 0.2))],
    () => true,
  ),
]

/** Settings that a gateway needs for the plain JSON devices: their mapping and their places. */
export function demoSettings(): Record<string, unknown> {
  const plain = demoDevices.filter(({ speaks }) => speaks === 'json')
  return {
    models: { assign: [{ model: 'stream-window', property: 'temperature' }] },
    bridges: {
      json: [{ topic: 'site/{device}/state', time: { path: 'at', format: 'unix-ms' }, fields: 'auto' }],
    },
    provisioning: {
      devices: Object.fromEntries(
        plain.map(({ id, name, place, fields }) => [
          id,
          {
            name,
            location: place,
            // No update interval: that of the history differs from that of the live values.
            fields: Object.fromEntries(fields.map((one) => [one.name, { unitCode: one.unitCode }])),
          },
        ]),
      ),
    },
  }
}

/** The messages of a device with the measurements of some instants. */
export function messagesOf(
  device: DemoDevice,
  times: readonly number[],
): { topic: string; payload: string }[] {
  if (times.length === 0) return []
  if (device.speaks === 'json') {
    return times.map((time) => ({
      topic: `site/${device.id}/state`,
      payload: JSON.stringify(plainJson(device, time)),
    }))
  }
  return [{ topic: `senml/${device.id}`, payload: JSON.stringify(senmlPack(device, times)) }]
}

function plainJson({ fields }: DemoDevice, time: number): Record<string, number> {
  return { at: time, ...Object.fromEntries(fields.map((one) => [one.name, rounded(one, time)])) }
}

/** A pack by RFC 8428: base name and base time in the first record, times relative to it. */
function senmlPack({ id, fields }: DemoDevice, times: readonly number[]): Record<string, unknown>[] {
  const base = times[0]!
  const records = times.flatMap((time) =>
    fields.map((one) => ({
      n: one.name,
      u: one.unit,
      v: rounded(one, time),
      ...(time === base ? {} : { t: (time - base) / 1000 }),
    })),
  )
  return records.map((record, i) => (i === 0 ? { bn: `${id}:`, bt: base / 1000, ...record } : record))
}

function rounded(one: DemoField, time: number): number {
  return Number(one.at(time).toFixed(one.digits))
}
