/**
 * A firmware bridge: a total, pure function from one frame to readings and problems. It keeps no state, does
 * no I/O, reads no clock (the frame carries its time) and never throws. Each bridge folder contains
 * `decoder.ts`, which exports one `defineBridge({...})`, and `examples.json`, the golden examples that define
 * its behaviour.
 */
import type { Decoded, Frame } from './pipeline.ts'

/** A mistake in the settings of a bridge. */
export interface SettingProblem {
  /** Path within the given settings, such as `[0].fields[2].scale`; empty for the settings as a whole. */
  readonly path: string
  readonly expected: string
}

/** Settings as an operator wrote them, prepared for `decode`; or all their mistakes. */
export type Checked<Settings> =
  | { readonly settings: Settings; readonly problems: readonly [] }
  | { readonly settings?: undefined; readonly problems: readonly SettingProblem[] }

export interface Bridge<Settings = undefined> {
  /** Folder name, used in settings, metrics and quarantine records. */
  readonly name: string
  readonly version: string
  readonly summary: string
  /** MQTT topic filters that the bridge reads without any configuration. */
  readonly topics: readonly string[]
  /** Media types that the bridge reads on HTTP. */
  readonly contentTypes: readonly string[]
  /** Media type of the payloads, for the description of a source. */
  readonly format: string
  /** Present if the bridge has settings: checks them once, before decoding starts. Never throws. */
  check?(raw: unknown): Checked<Settings>
  /** Topic filters that the bridge reads with the given settings, in addition to `topics`. */
  claims?(settings: Settings): readonly string[]
  decode(frame: Frame, settings: Settings): Decoded
  /**
   * Proposes a mapping for a frame that no bridge reads; undefined if it finds no reading. Total and pure,
   * like `decode`.
   */
  propose?(frame: Frame): Proposal | undefined
}

/** A mapping that lets a bridge read a frame and similar ones. */
export interface Proposal {
  /** Topic filter; may have named levels if the bridge has settings. */
  readonly topic: string
  /** The source to add to the settings of the bridge, if it has settings. */
  readonly source?: Readonly<Record<string, unknown>>
}

export function defineBridge<Settings = undefined>(bridge: Bridge<Settings>): Bridge<Settings> {
  return Object.freeze(bridge)
}
