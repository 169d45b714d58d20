/**
 * Weights of media types by an Accept header [RFC 9110 12.5.1]: the most specific range that covers a type
 * decides, independent of its position. Pure; an invalid weight counts as 0.
 */

interface MediaRange {
  readonly type: string
  readonly quality: number
}

/** The weight of each type, 0 to 1, in the given order; 0 means not acceptable. */
export function qualitiesOf(accept: string, types: readonly string[]): readonly number[] {
  const ranges = accept.split(',').map(parseRange)
  return types.map((type) => qualityOf(type, ranges))
}

/** Whether the header contains wildcards. */
export const acceptsWildcards = (accept: string): boolean =>
  accept.split(',').some((text) => parseRange(text).type.endsWith('/*'))

function parseRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => parameter.startsWith('q='))
  const quality = weight === undefined ? 1 : Number(weight.slice(2))
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 }
}

function qualityOf(type: string, ranges: readonly MediaRange[]): number {
  for (const pattern of [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === pattern)
    if (range !== undefined) return range.quality
  }
  return 0
}
