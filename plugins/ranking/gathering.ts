/**
 * Collects the values of candidates. The paths of all terms are walked together, level by level. So each
 * relationship needs few requests, however many terms use it. Several targets count with their mean.
 */

import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import { isObject, type JsonObject, own, textsOf } from '#ngsi-ld/values/json.ts'
import type { Criterion } from './attribute-path.ts'
import type { EntitiesById, WantedEntities } from './backend.ts'
import type { RankingTerm } from './ranked-query.ts'
import { attributesFor, compute, type Yardsticks } from './ranking-criteria.ts'
import { type AttributeFinder, instanceOf, numberOf, targetsOf } from './value.ts'

export interface GatheringPorts {
  readonly finder: AttributeFinder
  /** Spellings of a name to use in requests to a broker. */
  readonly spellings: (name: string) => readonly string[]
  readonly linked: (ids: readonly string[], wanted: WantedEntities) => Promise<EntitiesById>
  /** Yields to the event loop when the time slice is used up. */
  readonly yieldIfDue: YieldIfDue
}

export interface GatheredValues {
  /** By candidate, then by term; NaN without a value. */
  readonly values: readonly Float64Array[]
  /** Why linked entities could not be read. */
  readonly failures: readonly string[]
}

/** A name in the paths of terms, and the steps that follow it. */
interface Step {
  readonly name: string
  /** Terms whose path ends here, and those with a criterion computed from the entity reached here. */
  readonly ends: readonly number[]
  readonly criteria: readonly (readonly [term: number, criterion: Criterion])[]
  readonly steps: readonly Step[]
}

/** A position in a path: the candidate, and the object where the path continues. */
interface Place {
  readonly candidate: number
  readonly holder: JsonObject
}

/** The entities and terms whose values are collected. */
export interface Subject {
  readonly terms: readonly RankingTerm[]
  /** With attributes as members. */
  readonly entities: readonly JsonObject[]
  readonly yardsticks: Yardsticks
  /** Whether missing attributes may exist at the broker. */
  readonly isPartial: boolean
}

export function createGathering({ terms, entities, yardsticks, isPartial }: Subject, ports: GatheringPorts) {
  const root = stepOf(
    '',
    terms.map((term, index) => [term, index] as const),
    0,
  )
  const sums = rowsOf(new Float64Array(entities.length * terms.length), terms.length)
  const counts = rowsOf(new Uint32Array(entities.length * terms.length), terms.length)
  const failures: string[] = []
  const { finder } = ports
  /** The counts when the current walk began. */
  let found: readonly Uint32Array[] | undefined
  const noteFound = (): void => {
    found ??= rowsOf(new Uint32Array(entities.length * terms.length), terms.length)
    for (const [candidate, row] of found.entries()) row.set(counts[candidate]!)
  }

  const note = (candidate: number, term: number, value: number): void => {
    if (Number.isNaN(value) || (found?.[candidate]?.[term] ?? 0) > 0) return
    sums[candidate]![term]! += value
    counts[candidate]![term]!++
  }

  /** Collects the values that a step reaches from these places; links are followed together. */
  async function walk({ criteria, steps }: Step, places: readonly Place[]): Promise<void> {
    if (criteria.length > 0)
      for (const [at, { candidate, holder }] of places.entries()) {
        if (at % placesAtOnce === 0) await ports.yieldIfDue()
        for (const [term, criterion] of criteria)
          note(candidate, term, compute(criterion, holder, finder, yardsticks))
      }
    for (const step of steps) await pass(step, places)
  }

  async function pass(step: Step, places: readonly Place[]): Promise<void> {
    const nested: Place[] = []
    const links = new Map<string, number[]>()
    for (const [at, { candidate, holder }] of places.entries()) {
      if (at % placesAtOnce === 0) await ports.yieldIfDue()
      const key = finder.keyOf(holder, step.name)
      if (key === undefined) continue
      const attribute = holder[key]!
      for (const term of step.ends) note(candidate, term, numberOf(attribute, finder))
      if (step.steps.length === 0 && step.criteria.length === 0) continue
      const within = withinAttribute(step, attribute)
      if (within !== undefined) nested.push({ candidate, holder: within })
      else for (const id of targetsOf(attribute)) listed(links, id).push(candidate)
    }
    if (nested.length > 0) await walk(step, nested)
    if (links.size > 0) await walk(step, await follow(step, links))
  }

  /**
   * The object within the attribute where the path continues: a non-link, an inlined entity, or a
   * sub-attribute.
   */
  function withinAttribute(step: Step, attribute: Json): JsonObject | undefined {
    const instance = instanceOf(attribute)
    if (!isObject(instance)) return undefined
    const joined = own(instance, 'entity')
    if (isObject(joined)) return joined
    const isLink = targetsOf(instance).length > 0
    return !isLink || step.steps.some(({ name }) => finder.keyOf(instance, name) !== undefined)
      ? instance
      : undefined
  }

  async function follow(step: Step, links: ReadonlyMap<string, readonly number[]>): Promise<Place[]> {
    if (links.size > limits.rankingLinkedMax.value) {
      throw new GatewayError(
        'ngsi-ld.too-many-results',
        `${step.name} leads to more than ${limits.rankingLinkedMax.value} entities: request fewer candidates`,
      )
    }
    const wanted = (step === root ? wholes(links) : undefined) ?? { attrs: namesOf(step) }
    const { entities: found, failure } = await ports.linked([...links.keys()], wanted)
    if (failure !== undefined) failures.push(`entities linked by ${step.name} could not be read: ${failure}`)
    return [...links].flatMap(([id, candidates]) => {
      const holder = found.get(id)
      return holder === undefined ? [] : candidates.map((candidate) => ({ candidate, holder }))
    })
  }

  /** Requests candidates in full by their types, if a criterion reads attributes that cannot be named. */
  function wholes(candidates: ReadonlyMap<string, readonly number[]>): WantedEntities | undefined {
    if (root.criteria.every(([, criterion]) => criterion === 'proximity')) return undefined
    const types = new Set<string>()
    for (const [first] of candidates.values()) {
      const names = textsOf(entities[first!]!['type'] ?? [])
      if (names.length === 0) return undefined
      for (const type of names) types.add(ports.spellings(type).at(-1)!)
    }
    return types.size > typesMax ? undefined : { types: [...types] }
  }

  const namesOf = ({ criteria, steps }: Step): readonly string[] => [
    ...new Set(
      [
        ...steps.map(({ name }) => name),
        ...criteria.flatMap(([, criterion]) => attributesFor(criterion, yardsticks)),
      ].flatMap(ports.spellings),
    ),
  ]

  /** Reads attributes whose key is identical to a whole path. */
  async function readWholes(): Promise<void> {
    for (const [term, { name, path }] of terms.entries()) {
      if (path.names.length < 2 || path.criterion !== undefined) continue
      await ports.yieldIfDue()
      for (const [candidate, holder] of entities.entries())
        if (Object.hasOwn(holder, name)) note(candidate, term, numberOf(holder[name]!, finder))
    }
  }

  return Object.freeze({
    /** @throws ngsi-ld.too-many-results if a relationship leads to too many entities. */
    async gather(): Promise<GatheredValues> {
      await readWholes()
      noteFound()
      const places = [...entities.entries()].map(([candidate, holder]) => ({ candidate, holder }))
      // Criteria are computed only from complete entities.
      await walk(isPartial ? { ...root, criteria: [] } : root, places)
      if (isPartial) {
        // Attributes that the client did not request still count; values found before stay.
        noteFound()
        const lacking = counts.flatMap((numbers, candidate) => (numbers.includes(0) ? [candidate] : []))
        const ids = new Map(lacking.map((candidate) => [entities[candidate]!['id'] as string, [candidate]]))
        if (ids.size > 0) await walk(root, await follow(root, ids))
        noteFound()
        await walk({ ...root, steps: [] }, places)
      }
      for (const [candidate, sum] of sums.entries())
        for (let term = 0; term < terms.length; term++) sum[term]! /= counts[candidate]![term]!
      return { values: sums, failures }
    },
  })
}

/**
 * Cuts an array into rows that share its memory. An array per row would leave thousands of small blocks in
 * the heap of malloc.
 */
const rowsOf = <T extends Float64Array | Uint32Array>(all: T, width: number): readonly T[] =>
  Array.from({ length: all.length / width }, (_, row) => all.subarray(row * width, (row + 1) * width) as T)

/** Entities processed between two checks of the clock: a fraction of a millisecond per hundred. */
const placesAtOnce = 100

/** Number of types that fit into an address beside ids. */
const typesMax = 8

function listed(links: Map<string, number[]>, id: string): number[] {
  const known = links.get(id)
  if (known !== undefined) return known
  const made: number[] = []
  links.set(id, made)
  return made
}

function stepOf(name: string, terms: readonly (readonly [RankingTerm, number])[], depth: number): Step {
  const here = terms.filter(([{ path }]) => path.names.length === depth)
  const further = Map.groupBy(
    terms.filter(([{ path }]) => path.names.length > depth),
    ([{ path }]) => path.names[depth]!,
  )
  return {
    name,
    ends: here.flatMap(([{ path }, index]) => (path.criterion === undefined ? [index] : [])),
    criteria: here.flatMap(([{ path }, index]) =>
      path.criterion === undefined ? [] : [[index, path.criterion] as const],
    ),
    steps: [...further].map(([next, behind]) => stepOf(next, behind, depth + 1)),
  }
}
