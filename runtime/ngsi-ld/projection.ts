/**
 * What `pick` and `omit` name (GS CIM 009, 4.21): members of an entity, and within braces those of the entities that a
 * relationship links to. Separators are `,` and `|`. Names are canonical.
 */
import { limits } from '#base/limits.ts'
import { checkName } from './name.ts'
import { badRequestData, tooComplex } from './problem.ts'

export interface Projection {
  readonly names: ReadonlySet<string>
  /** Of the names, those with members of a linked entity behind them. */
  readonly linked: ReadonlyMap<string, Projection>
}

/** @throws ngsi-ld.bad-request-data naming the place of the mistake. */
export function parseProjection(text: string, expand: (term: string) => string, field: string): Projection {
  const tokens = text.match(/[^,|{}]+|[,|{}]/g) ?? []
  let at = 0
  const parseList = (depth: number): Projection => {
    if (depth > limits.joinLevelsMax.value) throw tooComplex(`${field} has too many levels of braces`)
    const names = new Set<string>()
    const linked = new Map<string, Projection>()
    do {
      const token = tokens[at++]?.trim() ?? ''
      if (token === '' || /^[,|{}]$/.test(token))
        throw badRequestData(`a name is missing in "${text}"`, field)
      const name = checkName(expand(token), field)
      names.add(name)
      if (tokens[at] !== '{') continue
      at++
      linked.set(name, parseList(depth + 1))
      if (tokens[at++] !== '}') throw badRequestData(`} is missing in "${text}"`, field)
    } while (tokens[at] === ',' || tokens[at] === '|' ? ++at : false)
    return { names, linked }
  }
  const projection = parseList(0)
  if (at < tokens.length) throw badRequestData(`unexpected ${tokens[at]} in "${text}"`, field)
  return projection
}

/** Levels of linked entities that a projection reaches into. */
export function depthOf({ linked }: Projection): number {
  return Math.max(0, ...[...linked.values()].map((inner) => 1 + depthOf(inner)))
}
