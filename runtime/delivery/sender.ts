/**
 * Sends a notification by the protocol of its address. Results have the same form for all protocols, so that
 * the dispatcher treats all endpoints alike.
 */
import type { Clock } from '#base/time/clock.ts'
import { isTunnelled } from '#ngsi-ld/values/tunnel-uri.ts'
import { createHttpEndpoint, type HttpEndpointSettings, type OutgoingRequest } from './http-endpoint.ts'
import type { Sent } from './verdict.ts'

export interface Outgoing extends OutgoingRequest {
  /** Present if the address is an MQTT address. */
  readonly mqtt?: { readonly version: 4 | 5 | undefined; readonly qos: 0 | 1 | 2 } | undefined
  /** The component of this gateway that receives it, if it is for one. */
  readonly component?: string | undefined
}

export interface SenderPorts {
  readonly clock: Clock
  /** Sends by MQTT. */
  readonly publish: (request: Outgoing & { readonly mqtt: object }) => Promise<Sent>
  /** Sends through a tunnel. */
  readonly tunnel: (request: OutgoingRequest) => Promise<Sent>
  /** Passes it to a component of this gateway. */
  readonly component: (name: string, request: OutgoingRequest) => Promise<Sent>
}

export function createSender(
  { clock, publish, tunnel, component: pass }: SenderPorts,
  settings: HttpEndpointSettings,
) {
  const http = createHttpEndpoint(clock, settings)
  return Object.freeze({
    send({ mqtt, component, ...request }: Outgoing): Promise<Sent> {
      if (component !== undefined) return pass(component, request)
      if (mqtt !== undefined) return publish({ ...request, mqtt })
      return isTunnelled(request.uri) ? tunnel(request) : http.send(request)
    },
    /** Closes all connections; requests in flight fail. */
    close: http.close,
  })
}
