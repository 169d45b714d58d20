/**
 * Media types by the weights of an Accept header [RFC 9110 12.5.1]: of all ranges that cover a type the most specific one decides,
 * wherever it stands. Pure; a weight that is none counts 0.
 */

interface MediaRange {
  readonly type: string
  readonly quality: number
}

/** How much each type is wanted, 0 to 1, in the order given; 0 where it is not taken. */
export function qualitiesOf(accept: string, types: readonly string[]): readonly number[] {
  const ranges = accept.split(',').map(parseRange)
  return types.map((type) => qualityOf(type, ranges))
}

/** Whether a header names what it takes by wildcards, too. */
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
