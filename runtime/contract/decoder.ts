/**
 * What a firmware bridge is: a total, pure function from one frame to readings and problems. It keeps no state,
 * does no I/O, reads no clock (the frame carries its time) and never throws. Each bridge folder holds
 * `decoder.ts` exporting one `defineBridge({...})` and `examples.json`, its golden examples, which are law.
 */
import type { Decoded, Frame } from './pipeline.ts'

/** One mistake in the settings of a bridge. */
export interface SettingProblem {
  /** Place in the settings given, such as `[0].fields[2].scale`; empty for the whole. */
  readonly path: string
  readonly expected: string
}

/** Settings as written by a person, made ready for `decode`; or all their mistakes at once. */
export type Checked<Settings> =
  | { readonly settings: Settings; readonly problems: readonly [] }
  | { readonly settings?: undefined; readonly problems: readonly SettingProblem[] }

export interface Bridge<Settings = undefined> {
  /** Folder name, used in settings, metrics and quarantine records. */
  readonly name: string
  readonly version: string
  readonly summary: string
  /** MQTT topic filters claimed without any configuration. */
  readonly topics: readonly string[]
  /** Media types claimed on HTTP. */
  readonly contentTypes: readonly string[]
  /** Media type that says what the bridge reads, for the description of a source. */
  readonly format: string
  /** Present where the bridge has settings: checks them once, before anything is decoded. Never throws. */
  check?(raw: unknown): Checked<Settings>
  /** Topic filters claimed under the given settings, in addition to `topics`. */
  claims?(settings: Settings): readonly string[]
  decode(frame: Frame, settings: Settings): Decoded
  /** How it could read a frame that nobody claims; undefined where it finds nothing in it. Total and pure, as `decode`. */
  propose?(frame: Frame): Proposal | undefined
}

/** What to map so that a bridge reads a frame, and those like it. */
export interface Proposal {
  /** Topic filter; that of a bridge with settings may have named levels. */
  readonly topic: string
  /** The source to add to the settings of a bridge that has some. */
  readonly source?: Readonly<Record<string, unknown>>
}

export function defineBridge<Settings = undefined>(bridge: Bridge<Settings>): Bridge<Settings> {
  return Object.freeze(bridge)
}
