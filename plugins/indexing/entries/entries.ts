/**
 * Entities as rows: what one gives (kinds, scalars, links, words, places, times) stands in the tables exactly as long as it says
 * so. Where several brokers tell of one id, the first of them speaks; the next one is heard when that one is gone. Each
 * function is a part of a transaction that `catalogue.ts` begins.
 */
import type { Json } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { sameJson } from '#ngsi-ld/values/json.ts'
import type { Deriving } from './derive.ts'
import { kindNames, kinds, kindsOf, paths } from './entity-kinds.ts'
import { bareObservation, type Facts, factsOf, type Scalar } from './facts.ts'
import type { Naming } from './naming.ts'
import type { Statements } from './statements.ts'

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
  times(): { readonly created: number }
}

export interface Difference {
  readonly added: number
  readonly changed: number
  readonly removed: number
}

export interface EntryRow {
  readonly kinds: number
  readonly generation: number
  readonly created: number
  readonly doc: string
}

export function createEntries(sql: Statements, naming: Naming, deriving: Deriving) {
  const rows = createRows(sql, naming)
  const counted = new Map<string, [b: number, kind: number, by: number]>()

  const count = (b: number, bits: number, by: number): void => {
    for (const name of kindNames) {
      const kind = kinds[name]
      if ((bits & kind) === 0) continue
      const key = `${b} ${kind}`
      const known = counted.get(key)?.[2] ?? 0
      counted.set(key, [b, kind, known + by])
    }
  }

  /** Who speaks for a node after an entry of it changed, and what that one says. */
  function settle(n: number): void {
    const { prime, kinds: before } = sql.nodeRow.get(n) as { prime: number | null; kinds: number }
    const first = sql.firstEntry.get(n) as (EntryRow & { b: number }) | undefined
    const after = first?.kinds ?? 0
    const facts = first && factsOf(JSON.parse(first.doc) as Entity, after)
    const isNew = rows.write(n, before, after, facts)
    const spread = ((after | before) & (kinds.platform | kinds.property | kinds.point)) === 0 ? 1 : 2
    if (isNew) deriving.mark(n, spread)
    if ((first?.b ?? null) !== prime || after !== before) sql.speak.run(first?.b ?? null, after, n)
    if (first === undefined) naming.release(n)
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

  function remove(b: number, id: string): keyof Difference | undefined {
    const n = naming.known(id)
    return n === undefined ? undefined : drop(b, n)
  }

  return Object.freeze({
    /** Takes in an entity, or out where none of its types is indexed. */
    put(b: number, told: ToldEntity, generation: number): keyof Difference | undefined {
      const bits = kindsOf(told.types)
      if (bits === 0) return remove(b, told.id)
      const n = naming.node(told.id)
      const known = sql.entry.get(n, b) as EntryRow | undefined
      // Of an observation only whose it is and when it was made is kept: its values change too often.
      const isBare = (bits & ~kinds.observation) === 0
      const doc = isBare ? JSON.stringify(bareObservation(told.entity())) : told.text()
      if (known !== undefined && known.doc === doc && known.kinds === bits) {
        if (known.generation !== generation) sql.touchEntry.run(generation, n, b)
        return undefined
      }
      sql.putEntry.run(n, b, bits, generation, told.times().created, doc)
      count(b, bits & ~(known?.kinds ?? 0), 1)
      count(b, (known?.kinds ?? 0) & ~bits, -1)
      const { prime } = sql.nodeRow.get(n) as { prime: number | null }
      // Where another one speaks, nothing follows from this.
      if (prime === null || prime >= b) settle(n)
      return known === undefined ? 'added' : 'changed'
    },
    remove,
    drop,
    /** At the begin and the end of a transaction: how many entities of each kind there are. */
    beginCount: (): void => counted.clear(),
    endCount(): void {
      for (const [b, kind, by] of counted.values()) if (by !== 0) sql.tally.run(b, kind, by)
    },
  })
}

/** Rows of a node become those of its facts. */
function createRows(sql: Statements, naming: Naming) {
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
    const before = new Set<string>()
    for (const row of sql.scalars.all(n) as [number, Scalar][]) {
      kept.set(scalarKey(...row), row)
      before.add(scalarKey(...row))
    }
    for (const [name, value] of wanted) {
      const k = naming.name(name)
      const key = scalarKey(k, value)
      kept.delete(key)
      if (!before.has(key)) sql.addScalar.run(n, k, value)
    }
    for (const [k, value] of kept.values()) sql.dropScalar.run(n, k, value)
  }

  /** True when a link is another one that places or words may follow. */
  function writeLinks(n: number, wanted: Facts['links']): boolean {
    const before = new Set<string>()
    for (const [k, target] of sql.links.all(n) as [number, number][]) before.add(`${k} ${target}`)
    const kept = new Set(before)
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
      if (target !== n) naming.release(target)
    }
    return changed || kept.size > 0
  }

  /** True when what it says of places or words is something else. */
  function writeOwn(n: number, words: string, places: readonly Json[]): boolean {
    const said = (sql.own.get(n) as { words: string; places: string } | undefined) ?? {
      words: '',
      places: '[]',
    }
    if (said.words === words && sameJson(JSON.parse(said.places) as Json, places)) return false
    if (words === '' && places.length === 0) sql.dropOwn.run(n)
    else sql.putOwn.run(n, words, JSON.stringify(places))
    return true
  }

  function writeSpan(n: number, facts: Facts | undefined): void {
    const { begins, ends, seen } = facts ?? {}
    if (begins === undefined && ends === undefined && seen === undefined) sql.dropSpan.run(n)
    else sql.putSpan.run(n, begins ?? null, ends ?? null, seen ?? null)
  }

  return {
    /** True when places or words may follow from it for itself or for others. */
    write(n: number, before: number, after: number, facts: Facts | undefined): boolean {
      writeKinds(n, before, after)
      writeScalars(n, facts?.scalars ?? [])
      writeSpan(n, facts)
      const isRelinked = writeLinks(n, facts?.links ?? [])
      const isResaid = writeOwn(n, facts?.words ?? '', facts?.places ?? [])
      return isRelinked || isResaid || before !== after
    },
  }
}

const scalarKey = (k: number, value: Scalar): string => {
  if (typeof value === 'number') return `${k} n${value}`
  return typeof value === 'string' ? `${k} t${value}` : `${k} b${value.join()}`
}

/** Links that places and words follow. */
const leading: ReadonlySet<string> = new Set([
  paths.generatedBy,
  paths.isHostedBy,
  paths.observes,
  paths.streamObserves,
  paths.relativePlace,
])
