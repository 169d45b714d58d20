/**
 * The index as it is written. Brokers tell of their entities in any order; writing goes in slices, each one transaction, so that
 * the process answers between them; what is told again changes nothing, so who keeps a cursor writes it behind them. A full
 * reading marks what it is told of and sweeps what it was not told of. What partners make of each other follows by `derive.ts`.
 */
import { limits } from '#base/limits/limits.ts'
import type { PluginDatabase } from '#contract'
import { createDeriving } from './derive.ts'
import { kindNames, kinds } from './entity-kinds.ts'
import { createEntries, type Difference, type EntryRow, type ToldEntity } from './entries.ts'
import { createNaming } from './naming.ts'
import { prepareStatements } from './statements.ts'

/** What became of entities of one broker. One that has no indexed type (any more) is taken out. */
export interface Told {
  readonly changed: readonly ToldEntity[]
  /** Ids; unknown ones change nothing. */
  readonly deleted?: readonly string[]
}

export type Catalogue = ReturnType<typeof createCatalogue>

/** What is made anew when the file is. */
function open(database: PluginDatabase) {
  const sql = prepareStatements(database)
  const naming = createNaming(sql)
  const deriving = createDeriving(sql, naming)
  return { sql, naming, deriving, entries: createEntries(sql, naming, deriving) }
}

/** `monotonic` tells ms. */
export function createCatalogue(database: PluginDatabase, monotonic: () => number) {
  let parts = open(database)

  /** A transaction. One that fails leaves nothing behind, in memory neither. */
  function commit(work: () => void): void {
    const { entries, naming } = parts
    try {
      database.transaction(() => {
        entries.beginCount()
        work()
        entries.endCount()
      })()
    } catch (error) {
      naming.forget()
      throw error
    }
  }

  /** Tells when a slice that begins now has lasted long enough. */
  function beginSlice(): () => boolean {
    const until = monotonic() + limits.indexSliceMs.value
    return () => monotonic() >= until
  }

  /** Derived rows that are due are made, slice by slice. */
  async function derive(): Promise<void> {
    const { deriving } = parts
    while (deriving.isDue()) {
      const isLong = beginSlice()
      commit(() => deriving.some(limits.indexSlice.value, isLong))
      await database.rest()
    }
  }

  const generationOf = (b: number): number => (parts.sql.generation.get(b) as number | undefined) ?? 0

  async function sweep(b: number, isOver: (generation: number) => boolean): Promise<number> {
    const { sql, entries } = parts
    let removed = 0
    for (let behind = 0; ; ) {
      const rows = sql.entriesOf.all(b, behind, limits.indexSlice.value) as {
        n: number
        generation: number
      }[]
      if (rows.length === 0) break
      const isLong = beginSlice()
      commit(() => {
        for (const { n, generation } of rows) {
          if (isOver(generation) && entries.drop(b, n) !== undefined) removed++
          behind = n
          if (isLong()) break
        }
      })
      await database.rest()
    }
    await derive()
    return removed
  }

  /** Takes in what a broker tells, in any order and number; when this is done all of it is found. */
  async function take(b: number, { changed, deleted = [] }: Told): Promise<Difference> {
    const { entries, deriving } = parts
    const difference = { added: 0, changed: 0, removed: 0 }
    const generation = generationOf(b)
    const works: (() => keyof Difference | undefined)[] = [
      ...changed.map((told) => () => entries.put(b, told, generation)),
      ...deleted.map((id) => () => entries.remove(b, id)),
    ]
    const step = limits.indexSlice.value
    for (let at = 0; at < works.length; ) {
      const isLong = beginSlice()
      const end = Math.min(at + step, works.length)
      commit(() => {
        do {
          const what = works[at++]!()
          if (what !== undefined) difference[what]++
        } while (at < end && !isLong())
        // What follows for themselves; what follows for many has turns of its own.
        deriving.some(step, isLong)
      })
      await database.rest()
    }
    await derive()
    return difference
  }

  return Object.freeze({
    take,

    /** A full reading of a broker begins: what is not told from now on until `endLoad` is gone. */
    beginLoad: (b: number): void => void parts.sql.nextGeneration.run(b),

    /** The full reading is complete: entries that were not told of during it are removed. Returns how many. */
    endLoad(b: number): Promise<number> {
      const current = generationOf(b)
      return sweep(b, (generation) => generation < current)
    },

    /** The first entities behind a node that the full reading has not told of yet. */
    unmarked: (b: number, behind: number, limit: number): readonly { n: number; id: string }[] =>
      parts.sql.unmarked.all(b, behind, generationOf(b), limit) as { n: number; id: string }[],

    /** All entries of a broker are removed, as one that is no longer asked. Returns how many. */
    removeAll: (b: number): Promise<number> => sweep(b, () => true),

    /** Makes what is due since before a kill. */
    derive,

    /** Empties the index, its brokers too: `brokers.restore` writes them back. */
    async empty(): Promise<void> {
      await database.reset()
      parts = open(database)
    },

    /** How many entities of each kind a broker tells of. */
    countsOf(b: number): Readonly<Record<string, number>> {
      const rows = parts.sql.tallies.all(b) as { kind: number; entities: number }[]
      const found = new Map(rows.map(({ kind, entities }) => [kind, entities]))
      return Object.fromEntries(kindNames.map((name) => [name, found.get(kinds[name]) ?? 0]))
    },

    /** The entity of an id as the one who speaks for it tells it. */
    entity(id: string): { readonly n: number; readonly doc: string; readonly kinds: number } | undefined {
      const n = parts.naming.known(id)
      const row = n === undefined ? undefined : (parts.sql.firstEntry.get(n) as EntryRow | undefined)
      return row === undefined ? undefined : { n: n!, doc: row.doc, kinds: row.kinds }
    },

    /** Whether one of these ids is an observation and nothing else. */
    hasBare: (ids: readonly string[]): boolean =>
      parts.sql.hasKinds.get(JSON.stringify(ids), kinds.observation) === 1,

    /** Notes when observations were made of which nothing else was told. */
    async see(times: readonly (readonly [n: number, seen: number])[]): Promise<void> {
      for (let at = 0; at < times.length; ) {
        const isLong = beginSlice()
        commit(() => {
          do {
            const [n, seen] = times[at++]!
            parts.sql.see.run(seen, n)
          } while (at < times.length && !isLong())
        })
        await database.rest()
      }
    },
    nodeOf: (id: string) => parts.naming.known(id),
    nameOf: (name: string) => parts.naming.knownName(name),
  })
}
