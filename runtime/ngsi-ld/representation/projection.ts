/**
 * Parses `pick` and `omit` (GS CIM 009, 4.21): members of an entity, and within braces those of the entities
 * that a relationship links to. Separators are `,` and `|`. Names are canonical.
 */
import { limits } from '#base/limits/limits.ts'
import { checkName } from '#ngsi-ld/values/names.ts'
import { badRequestData, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export interface Projection {
  readonly names: ReadonlySet<string>
  /** The names that are followed by members of a linked entity. */
  readonly linked: ReadonlyMap<string, Projection>
}

/** @throws ngsi-ld.bad-request-data with the position of the error. */
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

/** The number of levels of linked entities that a projection uses. */
export function depthOf({ linked }: Projection): number {
  return Math.max(0, ...[...linked.values()].map((inner) => 1 + depthOf(inner)))
}

/** The names, each followed by the names of linked entities in braces. */
export const printProjection = ({ names: all, linked }: Projection): string[] =>
  [...all].map((name) => {
    const inner = linked.get(name)
    return inner === undefined ? name : `${name}{${printProjection(inner).join(',')}}`
  })

/** Converts canonical names, as a subscription stores them, to a projection. */
export const projectionOf = (names: readonly string[] | undefined): Projection | undefined =>
  names === undefined ? undefined : parseProjection(names.join(','), (name) => name, 'projection')

/** The names in the form that clients send. */
export const renderMembers = (
  names: readonly string[] | undefined,
  show: (name: string) => string,
): readonly string[] | undefined =>
  names?.flatMap((name) => printProjection(parseProjection(name, show, 'projection')))
