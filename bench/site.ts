/**
 * The site that the HTTP and query benchmarks measure on: stations of about 750 bytes with five properties and a
 * place, spread over two degrees, and the requests made of them. Everything follows from numbers, so that servers
 * and loads in different processes agree without talking.
 */
import { hoursOf } from './meters.ts'

export const stationType = 'WeatherStation'

/** Values of `zone`, each shared by one station in so many. */
export const zones = 100

export function stationId(i: number): string {
  return `urn:ngsi-ld:${stationType}:station-${String(i).padStart(6, '0')}`
}

/** Entity number `i` as it is sent; about 750 bytes. */
export function station(i: number): Readonly<Record<string, unknown>> {
  const observedAt = '2026-01-01T00:00:00.000Z'
  return {
    id: stationId(i),
    type: stationType,
    temperature: { type: 'Property', value: spread(i, 7, 4000) / 100, unitCode: 'CEL', observedAt },
    humidity: { type: 'Property', value: spread(i, 11, 10_000) / 100, unitCode: 'P1' },
    pressure: { type: 'Property', value: 950 + spread(i, 13, 1000) / 10, unitCode: 'A97', observedAt },
    zone: { type: 'Property', value: i % zones },
    description: {
      type: 'Property',
      value: `Station ${i} ${'of the weather network in the hills '.repeat(6)}`,
    },
    location: { type: 'GeoProperty', value: { type: 'Point', coordinates: place(i) } },
  }
}

/** Longitude and latitude within a box of two by two degrees. */
function place(i: number): [number, number] {
  return [10 + spread(i, 17, 2_000_000) / 1e6, 50 + spread(i, 19, 2_000_000) / 1e6]
}

/** A number below `range` that looks random and follows from `i`. */
const spread = (i: number, seed: number, range: number): number => scrambled(i, seed) % range

/** A number below 2^32 that looks random and follows from `i`: another one for each `i` below 2^32. */
function scrambled(i: number, seed: number): number {
  let x = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(seed, 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d)
  x = Math.imul(x ^ (x >>> 12), 0x297a2d39)
  return (x ^ (x >>> 15)) >>> 0
}

export const requestKinds = [
  'get',
  'list',
  'observe',
  'write',
  'equal',
  'range',
  'between',
  'near',
  'mixed',
  'hours',
  'write-read',
  'observe-read',
  'moving-hours',
] as const
export type RequestKind = (typeof requestKinds)[number]

const entities = '/ngsi-ld/v1/entities'
const geo = 'georel=near;maxDistance=='

/** Path of request number `n` of a kind over so many stations; those of queries select at most a hundredth. */
export function pathOf(kind: RequestKind, n: number, count: number): string {
  const any = spread(n, 23, count)
  switch (kind) {
    case 'get':
      return `${entities}/${stationId(any)}`
    case 'list':
      return `${entities}?type=${stationType}&limit=20&offset=${20 * spread(n, 29, Math.min(50, count / 20))}`
    case 'equal':
      return `${entities}?type=${stationType}&q=zone==${any % zones}&limit=100`
    case 'range':
    case 'between': {
      const low = spread(n, 31, 3970) / 100
      const high = (low + 0.3).toFixed(2)
      const q = kind === 'range' ? `temperature==${low}..${high}` : `temperature>${low};temperature<${high}`
      return `${entities}?type=${stationType}&q=${q}&limit=100`
    }
    case 'near': {
      const [lon, lat] = place(any)
      return `${entities}?type=${stationType}&${geo}6000&geometry=Point&coordinates=[${lon},${lat}]&limit=100`
    }
    case 'mixed':
      return pathOf((['equal', 'range', 'near'] as const)[n % 3]!, n, count)
    case 'hours':
      return hoursOf(n, count)
    case 'write-read':
    case 'observe-read':
      return pathOf(writeOf(kind, n) ?? 'get', n, count)
    case 'moving-hours':
      return hoursOf(n, count, true)
    default:
      return `${entities}/${stationId(any)}/attrs`
  }
}

/** Of kinds that mix: the kind of write that request number `n` is, four in five; undefined for a read. */
function writeOf(kind: 'write-read' | 'observe-read', n: number): RequestKind | undefined {
  if (n % 5 === 0) return undefined
  return kind === 'write-read' ? 'write' : 'observe'
}

/**
 * Body of write number `n`: a new value, so that each write changes something and causes a notification, or an observation.
 * @param now ms UTC; when an observation is said to be made.
 */
export function bodyOf(kind: RequestKind, n: number, now: number): string | undefined {
  if (kind === 'observe') {
    const value = (spread(n, 37, 3000) / 100 + 10).toFixed(2)
    const observedAt = new Date(now).toISOString()
    return `{"temperature":{"type":"Property","value":${value},"unitCode":"CEL","observedAt":"${observedAt}"}}`
  }
  if (kind === 'write') {
    // From 10 to 95.9, in steps of 2e-8.
    return `{"humidity":{"type":"Property","value":${(scrambled(n, 41) / 5e7 + 10).toFixed(8)},"unitCode":"P1"}}`
  }
  if (kind === 'write-read' || kind === 'observe-read') {
    const write = writeOf(kind, n)
    return write === undefined ? undefined : bodyOf(write, n, now)
  }
  return undefined
}
