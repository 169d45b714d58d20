/**
 * Frames and readings, as plain values shared with bridges and plugins: a frame arrives, and a bridge decodes
 * it into readings. The broker then creates observations, changes and deliveries.
 */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** Bytes as received, with facts of the transport. */
export interface Frame {
  /** MQTT topic; for HTTP the path it was posted to, without the leading slash. */
  readonly topic: string
  readonly payload: Uint8Array
  /** Media type when the transport states one (HTTP, MQTT 5). */
  readonly contentType?: string | undefined
  /** Wall-clock milliseconds at reception. */
  readonly receivedAt: number
  /**
   * True only for a frame that another broker delivered *to us* with RETAIN=1: an old message, not an event.
   */
  readonly retained: boolean
  /** True if the sender marked this frame as sent before (DUP flag of MQTT). */
  readonly isResent?: boolean | undefined
  readonly transport: 'mqtt' | 'http' | 'bridge-in'
  /** MQTT client identifier or remote address, for the record. */
  readonly source?: string | undefined
}

/** Source of the time of a reading, most accurate first. */
export type TimeSource = 'device' | 'network' | 'gateway'

/** A decoded quantity of a device. */
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
  /**
   * Clock of `observedAt`: 'gateway' if the payload gives a time relative to reception. Absent means gateway.
   */
  readonly timeSource?: TimeSource | undefined
  /** Declared seconds until the next reading (SenML `ut`), when the payload states it. */
  readonly updateIntervalSeconds?: number | undefined
}

/** Why a frame, or a part of it, yielded no reading. `field` names the place in the payload. */
export interface DecodeProblem {
  readonly reason: string
  readonly field?: string | undefined
}

/** Both lists may be filled: a rejected part does not affect the other parts. */
export interface Decoded {
  readonly readings: readonly Reading[]
  readonly problems: readonly DecodeProblem[]
  /** Number of values skipped by a rule, such as `nan`; absent if none. */
  readonly skipped?: number
}
