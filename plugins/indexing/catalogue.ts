/**
 * The index as it is written: entities of indexed types as brokers tell them, in any order. What an entity gives (kinds,
 * scalars, links, words, places, times) is found in the tables exactly as long as it says so; what its partners make of it
 * follows by `derive.ts`. Writing goes in slices, each one transaction, so that the process answers between them; a cursor is
 * written with the last of them.
 */
import { limits } from '#base/limits.ts'
import type { Json, PluginDatabase } from '#contract'
import type { Entity } from '#ngsi-ld/entity.ts'
import { sameJson } from '#ngsi-ld/json.ts'
import { createDeriving } from './derive.ts'
import { bareObservation, type Facts, factsOf, type Scalar } from './facts.ts'
import { kindNames, kinds, kindsOf, paths } from './kinds.ts'
import { createNaming } from './naming.ts'
import { prepareStatements } from './statements.ts'
import { breathe } from './turns.ts'

/** An entity as a broker tells it. `EntityState` of the contract is one. */
export interface ToldEntity {
  readonly id: string
  /** Canonical names. */
  readonly types: readonly string[]
  /** Normalized, with canonical names, without system attributes. */
  entity(): Entity
  /** The same as JSON text. */
  text(): string
  /** createdAt, ms; where the broker does not say, when it was first heard of. */
  readonly created: number
}

/** What became of entities of one broker. One that has no indexed type (any more) is taken out. */
export interface Told {
  readonly changed: readonly ToldEntity[]
  /** Ids; unknown ones change nothing. */
  readonly deleted?: readonly string[]
  /** Written to the broker's row with the last slice: all before it is in the index. */
  readonly position?: number | undefined
}

export interface Difference {
  readonly added: number
  readonly changed: number
  readonly removed: number
}

interface EntryRow {
  readonly kinds: number
  readonly generation: number
  readonly created: number
  readonly doc: string
}

export type Catalogue = ReturnType<typeof createCatalogue>

export function createCatalogue(database: PluginDatabase) {
  let sql = prepareStatements(database)
  let naming = createNaming(sql)
  let deriving = createDeriving(sql, naming)
  const counted = new Map<string, [b: number, kind: number, by: number]>()

  function prepare(): void {
    sql = prepareStatements(database)
    naming = createNaming(sql)
    deriving = createDeriving(sql, naming)
  }

  /** A transaction. One that fails leaves nothing behind, in memory neither. */
  function commit<T>(work: () => T): T {
    try {
      return database.transaction(() => {
        counted.clear()
        const result = work()
        for (const [b, kind, by] of counted.values()) if (by !== 0) sql.tally.run(b, kind, by)
        return result
      })()
    } catch (error) {
      naming.forget()
      throw error
    }
  }

  const count = (b: number, bits: number, by: number): void => {
    for (const name of kindNames) {
      const kind = kinds[name]
      if ((bits & kind) === 0) continue
      const key = `${b} ${kind}`
      const known = counted.get(key) ?? [b, kind, 0]
      counted.set(key, [b, kind, known[2] + by])
    }
  }

  /** Scalars, links, words, places and times of a node become those of the facts; '' where nobody speaks for it any more. */
  function write(n: number, before: number, after: number, facts: Facts | undefined): void {
    writeKinds(n, before, after)
    writeScalars(n, facts?.scalars ?? [])
    const relinked = writeLinks(n, facts?.links ?? [])
    const own = sql.own.get(n) as { words: string; places: string } | undefined
    const words = facts?.words ?? ''
    const places = JSON.stringify(facts?.places ?? [])
    const isSaid = words !== '' || places !== '[]'
    const said = own ?? { words: '', places: '[]' }
    const resaid = said.words !== words || !sameJson(JSON.parse(said.places) as Json, facts?.places ?? [])
    if (resaid && isSaid) sql.putOwn.run(n, words, places)
    else if (resaid) sql.dropOwn.run(n)
    const spread = (after | before) & (kinds.platform | kinds.property | kinds.point) ? 2 : 1
    if (resaid || relinked || before !== after) deriving.mark(n, spread)
    writeSpan(n, facts)
  }

  function writeKinds(n: number, before: number, after: number): void {
    if (before === after) return
    for (const name of kindNames) {
      const kind = kinds[name]
      if ((after & ~before & kind) !== 0) sql.addKind.run(kind, n)
      if ((before & ~after & kind) !== 0) sql.dropKinds.run(kind, n)
    }
  }

  function writeScalars(n: number, wanted: Facts['scalars']): void {
    const kept = new Map<string, readonly [number, Scalar]>()
    for (const row of sql.scalars.all(n) as [number, Scalar][]) kept.set(scalarKey(...row), row)
    for (const [name, value] of wanted) {
      const k = naming.name(name)
      if (!kept.delete(scalarKey(k, value))) sql.addScalar.run(n, k, value)
    }
    for (const [k, value] of kept.values()) sql.dropScalar.run(n, k, value)
  }

  /** True when a link that places or words follow is another one. */
  function writeLinks(n: number, wanted: Facts['links']): boolean {
    const kept = new Set<string>()
    for (const [k, target] of sql.links.all(n) as [number, number][]) kept.add(`${k} ${target}`)
    const before = new Set(kept)
    let changed = false
    for (const [name, id] of wanted) {
      const [k, target] = [naming.name(name), naming.node(id)]
      kept.delete(`${k} ${target}`)
      if (before.has(`${k} ${target}`)) continue
      sql.addLink.run(n, k, target)
      changed ||= leading.has(name)
    }
    for (const key of kept) {
      const [k, target] = key.split(' ').map(Number) as [number, number]
      sql.dropLink.run(n, k, target)
      naming.release(target)
    }
    return changed || kept.size > 0
  }

  function writeSpan(n: number, facts: Facts | undefined): void {
    const { begins, ends, seen } = facts ?? {}
    if (begins === undefined && ends === undefined && seen === undefined) sql.dropSpan.run(n)
    else sql.putSpan.run(n, begins ?? null, ends ?? null, seen ?? null)
  }

  /** Who speaks for a node after an entry of it changed, and what that one says. */
  function settle(n: number): void {
    const { prime, kinds: before } = sql.nodeRow.get(n) as { prime: number | null; kinds: number }
    const first = sql.firstEntry.get(n) as (EntryRow & { b: number }) | undefined
    const after = first?.kinds ?? 0
    write(n, before, after, first && factsOf(docOf(first), after))
    if ((first?.b ?? null) !== prime || after !== before) sql.speak.run(first?.b ?? null, after, n)
    if (first === undefined) naming.release(n)
  }

  function put(b: number, told: ToldEntity, generation: number): keyof Difference | undefined {
    const bits = kindsOf(told.types)
    if (bits === 0) return remove(b, told.id)
    const n = naming.node(told.id)
    const known = sql.entry.get(n, b) as EntryRow | undefined
    // Of an observation only what is derived is kept; its last time changes too often to be compared by text.
    const isBare = (bits & ~kinds.observation) === 0
    const doc = isBare ? bareText(told) : told.text()
    if (known !== undefined && known.doc === doc && known.kinds === bits) {
      if (known.generation !== generation) sql.touchEntry.run(generation, n, b)
      return undefined
    }
    sql.putEntry.run(n, b, bits, generation, told.created, doc)
    count(b, bits & ~(known?.kinds ?? 0), 1)
    count(b, (known?.kinds ?? 0) & ~bits, -1)
    const { prime } = sql.nodeRow.get(n) as { prime: number | null }
    // What another one says is known already.
    if (prime === null || prime >= b) settle(n)
    return known === undefined ? 'added' : 'changed'
  }

  function remove(b: number, id: string): keyof Difference | undefined {
    const n = naming.known(id)
    return n === undefined ? undefined : drop(b, n)
  }

  function drop(b: number, n: number): keyof Difference | undefined {
    const known = sql.entry.get(n, b) as EntryRow | undefined
    if (known === undefined) return undefined
    sql.dropEntry.run(n, b)
    count(b, known.kinds, -1)
    const { prime } = sql.nodeRow.get(n) as { prime: number | null }
    if (prime === b) settle(n)
    return 'removed'
  }

  const generationOf = (b: number): number => (sql.generation.get(b) as number | undefined) ?? 0

  /** Derived rows that are due are made, as long as it takes, slice by slice. */
  async function derive(): Promise<void> {
    while (deriving.isDue()) {
      commit(() => deriving.some(limits.indexSlice.value))
      await breathe()
    }
  }

  /** @param behind the last node that was swept. */
  async function sweep(b: number, isOver: (generation: number) => boolean): Promise<number> {
    let removed = 0
    for (let behind = 0; ; ) {
      const rows = sql.entriesOf.all(b, behind, limits.indexSlice.value) as {
        n: number
        generation: number
      }[]
      if (rows.length === 0) break
      commit(() => {
        for (const { n, generation } of rows) if (isOver(generation) && drop(b, n) !== undefined) removed++
      })
      behind = rows.at(-1)!.n
      await breathe()
    }
    await derive()
    return removed
  }

  return Object.freeze({
    /** Takes in what a broker tells; all of it is found when this is done. Entities of one call may be of any order and number. */
    async take(b: number, { changed, deleted = [], position }: Told): Promise<Difference> {
      const difference = { added: 0, changed: 0, removed: 0 }
      const generation = generationOf(b)
      const works: (() => keyof Difference | undefined)[] = [
        ...changed.map((told) => () => put(b, told, generation)),
        ...deleted.map((id) => () => remove(b, id)),
      ]
      const step = limits.indexSlice.value
      for (let at = 0; at < works.length; at += step) {
        commit(() => {
          for (const work of works.slice(at, at + step)) {
            const what = work()
            if (what !== undefined) difference[what]++
          }
        })
        await breathe()
      }
      await derive()
      if (position !== undefined) sql.note.run(position, b)
      return difference
    },

    /** A full reading of a broker begins: what is not told from now on until `endLoad` is gone. */
    beginLoad(b: number): void {
      sql.nextGeneration.run(b)
    },

    /** The full reading is complete: entries that were not told of during it are removed. Returns how many. */
    endLoad(b: number): Promise<number> {
      const current = generationOf(b)
      return sweep(b, (generation) => generation < current)
    },

    /** All entries of a broker are removed, as one that is no longer asked. Returns how many. */
    removeAll: (b: number): Promise<number> => sweep(b, () => true),

    /** Derived rows that are due since a time before, as after a kill. */
    derive,

    /** Empties the index. Broker rows have to be written anew. */
    empty(): void {
      database.reset()
      prepare()
    },

    /** How many entities of each kind a broker tells of. */
    countsOf(b: number): Readonly<Record<string, number>> {
      const rows = sql.tallies.all(b) as { kind: number; entities: number }[]
      const found = new Map(rows.map(({ kind, entities }) => [kind, entities]))
      return Object.fromEntries(kindNames.map((name) => [name, found.get(kinds[name]) ?? 0]))
    },

    /** The entity of an id as the one who speaks for it tells it. */
    entity(id: string): { readonly n: number; readonly doc: string; readonly kinds: number } | undefined {
      const n = naming.known(id)
      const row = n === undefined ? undefined : (sql.firstEntry.get(n) as EntryRow | undefined)
      return row === undefined ? undefined : { n: n!, doc: row.doc, kinds: row.kinds }
    },
    /** Number of an id, where it has one. */
    nodeOf: (id: string) => naming.known(id),
    /** Number of a name, where it has one. */
    nameOf: (name: string) => naming.knownName(name),
    /** Notes when observations were made that nothing else was told of. */
    see(times: Iterable<readonly [n: number, seen: number]>): void {
      commit(() => {
        for (const [n, seen] of times) sql.see.run(seen, n)
      })
    },
    /** When an observation was made, as far as it is noted. */
    seen: (n: number) => (sql.span.get(n) as { seen: number | null } | undefined)?.seen ?? undefined,
    isDue: () => deriving.isDue(),
  })
}

const scalarKey = (k: number, value: Scalar): string =>
  typeof value === 'number'
    ? `${k} n${value}`
    : typeof value === 'string'
      ? `${k} t${value}`
      : `${k} b${value.join()}`

/** Links that places and words follow. */
const leading: ReadonlySet<string> = new Set([
  paths.generatedBy,
  paths.isHostedBy,
  paths.observes,
  paths.streamObserves,
  paths.relativePlace,
])

const docOf = ({ doc }: EntryRow): Entity => JSON.parse(doc) as Entity

const bareText = (told: ToldEntity): string => JSON.stringify(bareObservation(told.entity()))
