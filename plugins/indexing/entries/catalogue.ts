/**
 * The write side of the index. Entities arrive in any order and are written in slices. Each slice is one
 * transaction, and the process handles other work between slices. Writing is idempotent, so a caller can
 * store its cursor after the entities. A full read marks the entries it finds and sweeps the others.
 * `derive.ts` updates what follows from related entities.
 */
import { limits } from '#base/limits/limits.ts'
import type { PluginDatabase } from '#contract'
import { createDeriving } from './derive.ts'
import { kindNames, kinds } from './entity-kinds.ts'
import { type BrokerEntity, createEntries, type Difference, type EntryRow } from './entries.ts'
import { createNaming } from './naming.ts'
import { prepareStatements } from './statements.ts'

/**
 * Changed and deleted entities of one broker. An entity without an indexed type is removed from the index.
 */
export interface EntityChanges {
  readonly changed: readonly BrokerEntity[]
  /** Ids; unknown ids have no effect. */
  readonly deleted?: readonly string[]
}

export type Catalogue = ReturnType<typeof createCatalogue>

/** Everything that must be created again when the file is. */
function open(database: PluginDatabase) {
  const sql = prepareStatements(database)
  const naming = createNaming(sql)
  const deriving = createDeriving(sql, naming)
  return { sql, naming, deriving, entries: createEntries(sql, naming, deriving) }
}

/** @param monotonic a clock in ms. */
export function createCatalogue(database: PluginDatabase, monotonic: () => number) {
  let parts = open(database)

  /** Runs a transaction. A failure leaves no trace, in memory either. */
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

  /** Returns a function that is true once a slice that starts now has run long enough. */
  function beginSlice(): () => boolean {
    const until = monotonic() + limits.indexSliceMs.value
    return () => monotonic() >= until
  }

  /** Updates all stale derived rows, slice by slice. */
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

  /** Applies changes in any order and number. When it resolves, queries find all of them. */
  async function take(b: number, { changed, deleted = [] }: EntityChanges): Promise<Difference> {
    const { entries, deriving } = parts
    const difference = { added: 0, changed: 0, removed: 0 }
    const generation = generationOf(b)
    const works: (() => keyof Difference | undefined)[] = [
      ...changed.map((entity) => () => entries.put(b, entity, generation)),
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
        // Updates derived rows of these entities. Further rows get slices of their own.
        deriving.some(step, isLong)
      })
      await database.rest()
    }
    await derive()
    return difference
  }

  return Object.freeze({
    take,

    /** Starts a full read: `endLoad` deletes all entries that are not written after this. */
    beginLoad: (b: number): void => void parts.sql.nextGeneration.run(b),

    /** Ends a full read: deletes the entries that it did not find. Returns how many. */
    endLoad(b: number): Promise<number> {
      const current = generationOf(b)
      return sweep(b, (generation) => generation < current)
    },

    /** The first entities after a node that the full read has not found yet. */
    unmarked: (b: number, behind: number, limit: number): readonly { n: number; id: string }[] =>
      parts.sql.unmarked.all(b, behind, generationOf(b), limit) as { n: number; id: string }[],

    /** Deletes all entries of a broker. Returns how many. */
    removeAll: (b: number): Promise<number> => sweep(b, () => true),

    /** Updates derived rows that a kill left stale. */
    derive,

    /** Forgets numbers in memory that the file may have lost. */
    forgetNames: (): void => parts.naming.forget(),

    /** Empties the index including its brokers; `brokers.restore` writes those back. */
    async empty(): Promise<void> {
      await database.reset()
      parts = open(database)
    },

    /** Number of entities of each kind that a broker has. */
    countsOf(b: number): Readonly<Record<string, number>> {
      const rows = parts.sql.tallies.all(b) as { kind: number; entities: number }[]
      const found = new Map(rows.map(({ kind, entities }) => [kind, entities]))
      return Object.fromEntries(kindNames.map((name) => [name, found.get(kinds[name]) ?? 0]))
    },

    /** The entity with an id, in the version of the broker that takes precedence. */
    entity(id: string): { readonly n: number; readonly doc: string; readonly kinds: number } | undefined {
      const n = parts.naming.known(id)
      const row = n === undefined ? undefined : (parts.sql.firstEntry.get(n) as EntryRow | undefined)
      return row === undefined ? undefined : { n: n!, doc: row.doc, kinds: row.kinds }
    },

    /** Whether one of these ids is an observation and of no other type. */
    hasBare: (ids: readonly string[]): boolean =>
      parts.sql.hasKinds.get(JSON.stringify(ids), kinds.observation) === 1,

    /** Stores observation times for which the broker sent no document. */
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
