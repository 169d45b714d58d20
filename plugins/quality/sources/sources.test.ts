/** Access details, allowed brokers, warnings, and which readings of a payload belong to a stream. */
import { describe, expect, it } from 'vitest'
import type { Log } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { Reading, SourceHandlers } from '#contract'
import {
  iotLite,
  selvedgeEntity,
  selvedgeExchange,
  selvedgeQueue,
  selvedgeTopic,
} from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { accessOf, allowedHost } from './access-details.ts'
import { createSource } from './source.ts'
import { readingsOf } from './stream-readings.ts'

const service = (endpoint: string, more: Readonly<Record<string, string>> = {}): Entity =>
  ({
    id: 'urn:ngsi-ld:Service:1',
    type: iotLite.Service,
    ...Object.fromEntries(
      Object.entries({ [iotLite.endpoint]: endpoint, ...more }).map(([name, value]) => [
        name,
        { type: 'Property', value },
      ]),
    ),
  }) as unknown as Entity

const placeOf = (endpoint: string, more?: Readonly<Record<string, string>>) => {
  const access = accessOf(service(endpoint, more), 'urn:ngsi-ld:IotStream:1')
  return typeof access === 'object' ? [access.address, access.place] : access
}

describe('access details', () => {
  it('name a topic, a queue, or an exchange', () => {
    const topic = { [selvedgeTopic]: 'a/+/c' }
    expect(placeOf('mqtt://Broker.example', topic)).toEqual([
      'mqtt://broker.example:1883',
      { topic: 'a/+/c' },
    ])
    expect(placeOf('mqtts://b/site/a%20b')).toEqual(['mqtts://b:8883', { topic: 'site/a b' }])
    expect(placeOf('b:1884', { ...topic, [iotLite.interfaceType]: 'MQTT' })).toEqual([
      'mqtt://b:1884',
      { topic: 'a/+/c' },
    ])
    expect(placeOf('amqp://[::1]/site', { [selvedgeQueue]: 'q' })).toEqual([
      'amqp://[::1]:5672/site',
      { queue: 'q' },
    ])
    expect(placeOf('amqps://b', { [selvedgeExchange]: 'x' })).toEqual([
      'amqps://b:5671',
      { exchange: 'x', routingKey: '' },
    ])
  })

  it('name an observation entity at an NGSI-LD broker', () => {
    const usual = { entity: 'urn:ngsi-ld:StreamObservation:1' }
    expect(placeOf('https://b/x/ngsi-ld/v1/')).toEqual(['https://b:443/x', usual])
    expect(placeOf('http://b', { [iotLite.interfaceType]: 'NGSI-LD' })).toEqual(['http://b:80', usual])
    expect(placeOf('http://b/ngsi-ld', { [selvedgeEntity]: 'urn:x' })).toEqual([
      'http://b:80',
      { entity: 'urn:x' },
    ])
  })

  it('are none of a broker, or have a mistake', () => {
    expect([placeOf('http://b'), placeOf('mqtt:'), placeOf('')]).toEqual([undefined, undefined, undefined])
    for (const [endpoint, more] of [
      ['mqtt://me@b', { [selvedgeTopic]: 'a' }],
      ['mqtt://b', { [selvedgeTopic]: 'a/#/b' }],
      ['mqtt://b', { [selvedgeTopic]: '$share/a/b' }],
      ['mqtt://b', {}],
      ['amqp://b', {}],
    ] as const)
      expect(placeOf(endpoint, more)).toBeTypeOf('string')
  })
})

describe('allowed brokers', () => {
  const listed = (address: string, ...urls: string[]) =>
    allowedHost(address, { hosts: urls.map((url) => ({ url })), allowsLoopback: true })?.url

  it('are those at loopback addresses, unless the settings list brokers', () => {
    expect(listed('mqtt://127.0.0.1:1883')).toBeDefined()
    expect(listed('amqp://localhost:5672/site')).toBeDefined()
    expect(listed('mqtt://broker.example:1883')).toBeUndefined()
    expect(listed('mqtt://127.0.0.1:1883', 'mqtt://b')).toBeUndefined()
    expect(allowedHost('mqtt://127.0.0.1:1883', { hosts: [], allowsLoopback: false })).toBeUndefined()
  })

  it('must have the scheme, host and port of a listed one', () => {
    expect(listed('mqtts://b:8883', 'mqtt://b', 'mqtts://B')).toBe('mqtts://B')
    expect(listed('mqtt://b:1883', 'mqtts://b')).toBeUndefined()
    expect(listed('mqtt://b:1884', 'mqtt://b')).toBeUndefined()
    expect(listed('amqp://b:5672/site', 'amqp://b')).toBe('amqp://b')
  })
})

describe('a source', () => {
  /** The handlers of a source's connection, and the events that it logs. */
  async function opened() {
    const events: string[] = []
    const note = (event: string): void => void events.push(event)
    const handlers = Promise.withResolvers<SourceHandlers>()
    const source = createSource(
      {
        port: {
          allowsLoopback: true,
          async open(_, given) {
            handlers.resolve(given)
            return { follow() {}, isConnected: () => false, async close() {} }
          },
          decode: () => ({ readings: [], problems: [] }),
        },
        clock: systemClock,
        log: { debug: note, info: note, warn: note, error: note } as unknown as Log,
        digests: [],
        message: () => undefined,
      },
      { url: 'mqtt://127.0.0.1:1883' },
    )
    return { source, events, handlers: await handlers.promise }
  }

  it('is not reported as unreachable if the second attempt succeeds', async () => {
    const { source, events, handlers } = await opened()
    handlers.refused('connection refused')
    expect(source.complaint()).toBeUndefined()
    handlers.connected()
    expect(events).toEqual(['quality.source-connected'])
  })

  it('is reported once as unreachable, from the second attempt on, until it is connected again', async () => {
    const { source, events, handlers } = await opened()
    for (let i = 0; i < 3; i++) handlers.refused('connection refused')
    expect(events).toEqual(['quality.source-unreachable'])
    expect(source.complaint()).toContain('connection refused')
    handlers.connected()
    expect(source.complaint()).toBeUndefined()
    handlers.lost()
    expect(events.slice(1)).toEqual(['quality.source-connected', 'quality.source-unreachable'])
  })
})

describe('readings of a stream', () => {
  const reading = (device: string, field: string): Reading => ({ device, field, value: 1 })
  const all = [reading('a', 'temp'), reading('a', 'hum'), reading('b', 'temp')]
  const chosen = (id: string, more: { field?: string; label?: string }, from = all) =>
    readingsOf({ id, field: more.field, label: more.label }, from).map(({ device, field }) => device + field)

  it('are those of the named field, of the id, of the label, or of a single quantity', () => {
    expect(chosen('urn:x:a:temp', { field: 'hum' })).toEqual(['ahum'])
    expect(chosen('urn:ngsi-ld:IotStream:b:temp', {})).toEqual(['btemp'])
    expect(chosen('urn:x', { label: 'hum' })).toEqual(['ahum'])
    expect(chosen('urn:x', {}, [reading('a', 'v'), reading('a', 'v')])).toEqual(['av', 'av'])
    expect(chosen('urn:x', {})).toEqual([])
    expect(chosen('urn:x', {}, [])).toEqual([])
  })
})
