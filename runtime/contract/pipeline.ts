/**
 * The first two of the five nouns of the house, as plain values shared with bridges and plugins:
 * a frame arrives, a bridge turns it into readings. (Observation, change and delivery are born in the broker.)
 */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** Bytes as received, with what the transport knew. */
export interface Frame {
  /** MQTT topic; for HTTP the path it was posted to, without the leading slash. */
  readonly topic: string
  readonly payload: Uint8Array
  /** Media type when the transport states one (HTTP, MQTT 5). */
  readonly contentType?: string | undefined
  /** Wall-clock milliseconds at reception. */
  readonly receivedAt: number
  /** True only for a frame delivered *to us* by another broker with RETAIN=1: old news, not an event. */
  readonly retained: boolean
  /** True where the sender says that it sent this frame before (MQTT's DUP). */
  readonly isResent?: boolean | undefined
  readonly transport: 'mqtt' | 'http' | 'bridge-in'
  /** MQTT client identifier or remote address, for the record. */
  readonly source?: string | undefined
}

/** Where the time of a reading came from, best first. */
export type TimeSource = 'device' | 'network' | 'gateway'

/** One decoded quantity of one device. */
export interface Reading {
  /** Hardware identity, verbatim. */
  readonly device: string
  /** Name of the quantity at that device. */
  readonly field: string
  readonly value: Json
  /** UN/CEFACT common code (Rec. 20), when the unit is known. */
  readonly unitCode?: string | undefined
  /** The unit as the device wrote it, when no common code is known. */
  readonly unitText?: string | undefined
  /** Whole milliseconds since 1970 UTC of the measurement; absent when the payload says "now" or nothing. */
  readonly observedAt?: number | undefined
  /** Whose clock `observedAt` is by: 'gateway' where the payload counts from the reception. Absent means gateway. */
  readonly timeSource?: TimeSource | undefined
  /** Declared seconds until the next reading (SenML `ut`), when the payload states it. */
  readonly updateIntervalSeconds?: number | undefined
}

/** Why a frame, or a part of it, gave no reading. `field` names the place in the payload. */
export interface DecodeProblem {
  readonly reason: string
  readonly field?: string | undefined
}

/** Both may be filled: a part that is refused does not spoil the others. */
export interface Decoded {
  readonly readings: readonly Reading[]
  readonly problems: readonly DecodeProblem[]
  /** Values left out by rule, such as `nan`; absent for none. */
  readonly skipped?: number
}
