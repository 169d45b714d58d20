/**
 * What follows for an entity from its partners, in whatever order they came: the places of a sensor without one are those of its
 * platform, those of a stream without one are its sensor's; the words of both are also those of the property observed, of the
 * point they are at and of the platform. A pure function of `own` and `link`, made anew for what is marked and for what leads there.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { boundingBoxOf } from '#ngsi-ld/query/geo-query.ts'
import { kindNames, kinds, paths, searchable } from './entity-kinds.ts'
import type { Naming } from './naming.ts'
import type { Statements } from './statements.ts'

interface Said {
  readonly words: string
  /** JSON array of geometries. */
  readonly places: string
}

const silent: Said = { words: '', places: '[]' }

export type Deriving = ReturnType<typeof createDeriving>

export function createDeriving(sql: Statements, naming: Naming) {
  const saidBy = (n: number): Said => (sql.own.get(n) as Said | undefined) ?? silent
  const targets = (n: number, name: string): readonly number[] => {
    const k = naming.knownName(name)
    return k === undefined ? [] : (sql.targets.all(n, k) as number[])
  }
  const partners = (n: number, names: readonly string[]): number[] =>
    names.flatMap((name) => targets(n, name))

  function ofSensor(n: number, own: Said): Said {
    const platforms = targets(n, paths.isHostedBy).map(saidBy)
    const others = partners(n, [paths.observes, paths.relativePlace]).map(saidBy)
    return {
      words: joined([own, ...others, ...platforms]),
      places: own.places === '[]' ? placesOf(platforms) : own.places,
    }
  }

  function ofStream(n: number, own: Said): Said {
    const sensors = targets(n, paths.generatedBy)
      .filter((one) => one !== n)
      .map((one) => ofSensor(one, saidBy(one)))
    const others = partners(n, [paths.observes, paths.streamObserves, paths.relativePlace]).map(saidBy)
    return {
      words: joined([own, ...others, ...sensors]),
      places: own.places === '[]' ? placesOf(sensors) : own.places,
    }
  }

  function derived(n: number, bits: number): Said {
    const own = saidBy(n)
    const said = (bits & kinds.sensor) !== 0 ? ofSensor(n, own) : own
    return (bits & kinds.stream) !== 0 ? ofStream(n, said) : said
  }

  function write(n: number): void {
    const row = sql.nodeRow.get(n) as { kinds: number } | undefined
    const bits = (row?.kinds ?? 0) & searchable
    const next = bits === 0 ? silent : derived(n, bits)
    const known = sql.derived.get(n) as (Said & { kinds: number }) | undefined
    const before = known ?? { ...silent, kinds: bits }
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

  /** One step: a node made anew, or some of those that lead to it marked. Returns how much was done. */
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

  /** Marks a node, and those that lead to it in so many steps. */
  function mark(n: number, spread: number): void {
    sql.addStale.run(n, spread)
  }

  return Object.freeze({
    mark,
    isDue: () => sql.isStale.get() === 1,
    /** Does about so many steps of what is due, until it takes long. */
    some(most: number, isLong: () => boolean): void {
      for (let done = 0; done < most && !isLong(); ) {
        const did = step()
        if (did === 0) return
        done += did
      }
    },
  })
}

/** Words, each line once. */
const joined = (all: readonly Said[]): string =>
  [...new Set(all.flatMap(({ words }) => (words === '' ? [] : words.split('\n'))))].join('\n')

/** All their places, each once. */
const placesOf = (all: readonly Said[]): string => {
  const found = new Set(
    all.flatMap(({ places }) => (JSON.parse(places) as Json[]).map((place) => JSON.stringify(place))),
  )
  return `[${[...found].join()}]`
}
