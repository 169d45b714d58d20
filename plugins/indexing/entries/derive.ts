/**
 * Computes words and places that an entity inherits from related entities, in any order of arrival. A sensor
 * without a place has those of its platform; a stream without one has those of its sensor. Both inherit the
 * words of their observed property, point and platform. A pure function of tables `own` and `link`; stale
 * nodes and the nodes that link to them are recomputed.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { boundingBoxOf } from '#ngsi-ld/query/geo-query.ts'
import { kindNames, kinds, paths, searchable } from './entity-kinds.ts'
import type { Naming } from './naming.ts'
import type { Statements } from './statements.ts'

interface OwnContent {
  readonly words: string
  /** JSON array of geometries. */
  readonly places: string
}

const noContent: OwnContent = { words: '', places: '[]' }

export type Deriving = ReturnType<typeof createDeriving>

export function createDeriving(sql: Statements, naming: Naming) {
  const ownContent = (n: number): OwnContent => (sql.own.get(n) as OwnContent | undefined) ?? noContent
  const targets = (n: number, name: string): readonly number[] => {
    const k = naming.knownName(name)
    return k === undefined ? [] : (sql.targets.all(n, k) as number[])
  }
  const partners = (n: number, names: readonly string[]): number[] =>
    names.flatMap((name) => targets(n, name))

  function ofSensor(n: number, own: OwnContent): OwnContent {
    const platforms = targets(n, paths.isHostedBy).map(ownContent)
    const others = partners(n, [paths.observes, paths.relativePlace]).map(ownContent)
    return {
      words: joined([own, ...others, ...platforms]),
      places: own.places === '[]' ? placesOf(platforms) : own.places,
    }
  }

  function ofStream(n: number, own: OwnContent): OwnContent {
    const sensors = targets(n, paths.generatedBy)
      .filter((one) => one !== n)
      .map((one) => ofSensor(one, ownContent(one)))
    const others = partners(n, [paths.observes, paths.streamObserves, paths.relativePlace]).map(ownContent)
    return {
      words: joined([own, ...others, ...sensors]),
      places: own.places === '[]' ? placesOf(sensors) : own.places,
    }
  }

  function derived(n: number, bits: number): OwnContent {
    const own = ownContent(n)
    const content = (bits & kinds.sensor) !== 0 ? ofSensor(n, own) : own
    return (bits & kinds.stream) !== 0 ? ofStream(n, content) : content
  }

  function write(n: number): void {
    const row = sql.nodeRow.get(n) as { kinds: number } | undefined
    const bits = (row?.kinds ?? 0) & searchable
    const next = bits === 0 ? noContent : derived(n, bits)
    const known = sql.derived.get(n) as (OwnContent & { kinds: number }) | undefined
    const before = known ?? { ...noContent, kinds: bits }
    const isReworded = before.words !== next.words
    const isMoved = before.places !== next.places || before.kinds !== bits
    if (isReworded) {
      if (before.words !== '') sql.dropWords.run(n)
      if (next.words !== '') sql.addWords.run(n, next.words)
    }
    if (isMoved) {
      if (before.places !== '[]') takeBack(n)
      place(n, bits, JSON.parse(next.places) as Json[])
    }
    if (!isReworded && !isMoved) return
    if (next.words === '' && next.places === '[]') sql.dropDerived.run(n)
    else sql.putDerived.run(n, next.words, next.places, bits)
  }

  function takeBack(n: number): void {
    for (const p of sql.places.all(n) as number[]) {
      for (const s of sql.spots.all(p) as number[]) sql.dropSpot.run(s)
      sql.dropSpotsOf.run(p)
    }
    sql.dropPlaces.run(n)
  }

  function place(n: number, bits: number, geometries: readonly Json[]): void {
    for (const geometry of geometries) {
      const p = Number(sql.addPlace.run(n, JSON.stringify(geometry)).lastInsertRowid)
      const [west, south, east, north] = boundingBoxOf(geometry)!
      for (const name of kindNames) {
        const kind = kinds[name]
        if ((bits & kind) === 0) continue
        const s = sql.addSpot.run(west, east, south, north, kind, kind, p, n).lastInsertRowid
        sql.addSpotOf.run(p, Number(s))
      }
    }
  }

  /**
   * Performs one step: recomputes a node, or marks some of the nodes that link to it. Returns the amount of
   * work done.
   */
  function step(): number {
    const due = sql.stale.get() as { n: number; spread: number; behind: number } | undefined
    if (due === undefined) return 0
    const { n, spread, behind } = due
    if (behind === 0) write(n)
    const most = limits.indexSlice.value
    const linking = spread === 0 ? [] : (sql.linking.all(n, behind, most) as number[])
    for (const one of linking) {
      const { kinds: bits } = sql.nodeRow.get(one) as { kinds: number }
      if (one !== n && (bits & (kinds.sensor | kinds.stream)) !== 0) mark(one, spread - 1)
    }
    if (linking.length < most) sql.dropStale.run(n)
    else sql.moveStale.run(linking.at(-1)!, n)
    return 1 + linking.length
  }

  /** Marks a node as stale, and the nodes that reach it in up to `spread` links. */
  function mark(n: number, spread: number): void {
    sql.addStale.run(n, spread)
  }

  return Object.freeze({
    mark,
    isDue: () => sql.isStale.get() === 1,
    /** Performs about this many steps, or stops when the slice has run long enough. */
    some(most: number, isLong: () => boolean): void {
      for (let done = 0; done < most && !isLong(); ) {
        const did = step()
        if (did === 0) return
        done += did
      }
    },
  })
}

/** All words, without duplicate lines. */
const joined = (all: readonly OwnContent[]): string =>
  [...new Set(all.flatMap(({ words }) => (words === '' ? [] : words.split('\n'))))].join('\n')

/** All places, without duplicates. */
const placesOf = (all: readonly OwnContent[]): string => {
  const found = new Set(
    all.flatMap(({ places }) => (JSON.parse(places) as Json[]).map((place) => JSON.stringify(place))),
  )
  return `[${[...found].join()}]`
}
