/**
 * Sends a notification by the protocol that its address names. What came of it is said in the same words whatever the
 * protocol, so that the dispatcher treats all endpoints alike.
 */
import type { Clock } from '#base/time/clock.ts'
import { isTunnelled } from '#ngsi-ld/values/tunnel-uri.ts'
import { createHttpEndpoint, type HttpEndpointSettings, type OutgoingRequest } from './http-endpoint.ts'
import type { Sent } from './verdict.ts'

export interface Outgoing extends OutgoingRequest {
  /** There when the address is one of MQTT. */
  readonly mqtt?: { readonly version: 4 | 5 | undefined; readonly qos: 0 | 1 | 2 } | undefined
}

export interface SenderPorts {
  readonly clock: Clock
  /** Sends by MQTT. */
  readonly publish: (request: Outgoing & { readonly mqtt: object }) => Promise<Sent>
  /** Sends through a tunnel. */
  readonly tunnel: (request: OutgoingRequest) => Promise<Sent>
}

export interface Sender {
  send(request: Outgoing): Promise<Sent>
  /** Closes all connections; what is in flight fails. */
  close(): void
}

export function createSender(
  { clock, publish, tunnel }: SenderPorts,
  settings: HttpEndpointSettings,
): Sender {
  const http = createHttpEndpoint(clock, settings)
  return Object.freeze({
    send({ mqtt: wishes, ...request }) {
      if (wishes !== undefined) return publish({ ...request, mqtt: wishes })
      return isTunnelled(request.uri) ? tunnel(request) : http.send(request)
    },
    close: http.close,
  } satisfies Sender)
}
