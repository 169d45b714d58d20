/**
 * A pattern as NGSI-LD: the Event of a window, with canonical names. Its id depends on the model, the streams
 * and the end of the window, so a window that is analysed again has the same Event. Pure.
 */
import { createHash } from 'node:crypto'
import { iotStream, selvedgeConfidence } from '#contract/vocabulary.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { WindowPattern } from '#plugins/patterns/windows/window-pattern.ts'

/**
 * The id of the Event of a window; the key names the model and the streams. Its first eight digits are the
 * seconds of the end, so that Events of one time are stored beside each other.
 */
export function eventId(key: string, end: number): string {
  const seconds = (Math.floor(end / 1000) >>> 0).toString(16).padStart(8, '0')
  const digest = createHash('sha256').update(`${key} ${end}`).digest('hex')
  return `urn:ngsi-ld:Event:${seconds}${digest.slice(0, 16)}`
}

export const eventEntity = (id: string, streams: readonly string[], pattern: WindowPattern): JsonObject => ({
  id,
  type: iotStream.Event,
  [iotStream.label]: { type: 'Property', value: pattern.label },
  [iotStream.windowStart]: timeOf(pattern.start),
  [iotStream.windowEnd]: timeOf(pattern.end),
  [iotStream.detectedFrom]: streams.map((object) => ({ type: 'Relationship', object, datasetId: object })),
  [selvedgeConfidence]: { type: 'Property', value: pattern.confidence },
})

const timeOf = (ms: number): JsonObject => ({
  type: 'Property',
  value: { '@type': 'DateTime', '@value': msToDateTime(ms) },
})
