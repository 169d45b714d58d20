/** All firmware bridges. Which one reads a frame is decided by the intake, from their topics and media types. */
import type { Bridge } from '#contract'
import { json } from './json/decoder.ts'
import { senml } from './senml/decoder.ts'

/** Settings differ from bridge to bridge; each makes its own by `check`. */
export const bridges = [senml, json] as readonly Bridge<unknown>[]
