/** All firmware bridges. The intake selects the bridge for a frame by topics and media types. */
import type { Bridge } from '#contract'
import { json } from './json/decoder.ts'
import { senml } from './senml/decoder.ts'

/** Settings differ between bridges; each bridge validates its own with `check`. */
export const bridges = [senml, json] as readonly Bridge<unknown>[]
