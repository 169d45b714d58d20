/** How the orchestrator learns that streams of its broker changed. */
import type { Json } from '#contract'

export interface FollowedStreams {
  start(): void
  /** Takes a notification of the broker. @throws ngsi-ld.bad-request-data */
  receive?(body: Json): void
  readonly complaints: () => readonly string[]
  close(): Promise<void>
}

export interface FollowerPorts {
  /** A watched stream or its observation entity may have changed. Returns false for any other entity. */
  known(id: string): boolean
  /** An entity that is not watched was created or changed. */
  unknown(id: string): void
  /** A stream changed; its Sensor may be a virtual one. */
  virtualStream(sensor: () => string | undefined): void
  /** Changes may have been missed. */
  readAnew(): void
  /** Callback address of a purpose; undefined until the listeners are open. */
  readonly callback: (purpose: string) => string | undefined
}
