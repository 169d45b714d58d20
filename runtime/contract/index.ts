/** The public surface for bridges and plugins; the only barrel of the house. */
export { type Bridge, type Checked, defineBridge, type SettingProblem } from './decoder.ts'
export { createDecoding, type Decoding, readingsMax, undecodable } from './decoding.ts'
export { jsonOf, type Parsed } from './payload.ts'
export type { Decoded, DecodeProblem, Frame, Json, Reading, TimeSource } from './pipeline.ts'
