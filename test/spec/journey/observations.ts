/** What the journeys share: names of the sensor model, a subscription to observations, and how its notifications read. */
import { expect } from 'vitest'
import type { HttpClient } from '#test/kit/http-gateway.ts'
import { publishPacket, type RawClient } from '#test/kit/mqtt.ts'
import type { Received } from '#test/kit/receiver.ts'

export const streamObservation = 'http://purl.org/iot/ontology/iot-stream#StreamObservation'
export const result = 'http://www.w3.org/ns/sosa/hasSimpleResult'
export const observationId = (name: string): string => `urn:ngsi-ld:StreamObservation:${name}`

/** Subscribes an endpoint to all observations. */
export async function subscribe(client: HttpClient, uri: string): Promise<void> {
  const answer = await client.send('POST', '/ngsi-ld/v1/subscriptions', {
    type: 'Subscription',
    entities: [{ type: streamObservation }],
    notification: { endpoint: { uri, accept: 'application/json' } },
  })
  expect([answer.status, answer.text]).toEqual([201, ''])
}

/** Value and `device:field` of each observation that was told, in order of arrival. */
export function notifications(received: readonly Received[]): [value: number, name: string][] {
  return received.flatMap(({ body }) => {
    const { data } = JSON.parse(body) as { data: { id: string; [result]: { value: number } }[] }
    return data.map((entity): [number, string] => [
      entity[result].value,
      entity.id.slice(observationId('').length),
    ])
  })
}

/** A one-record SenML pack of device `bn` and field `n`. */
export const reading = (name: string, value: number, seconds: number): string => {
  const [device, field] = name.split(':')
  return JSON.stringify([{ bn: `${device}:`, n: field, u: 'Cel', v: value, t: seconds }])
}

/** Publishes at QoS 1, all at once, and settles when every PUBACK has come. */
export async function publishAll(
  client: RawClient,
  messages: readonly { topic: string; payload: string }[],
): Promise<void> {
  const open = new Set<number>()
  messages.forEach(({ topic, payload }, i) => {
    open.add(i + 1)
    client.send(publishPacket(topic, payload, { qos: 1, messageId: i + 1 }))
  })
  while (open.size > 0) {
    const packet = await client.next()
    expect(packet.cmd).toBe('puback')
    open.delete(packet.messageId!)
  }
}
