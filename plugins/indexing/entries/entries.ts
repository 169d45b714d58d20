/**
 * Stores entities as rows: kinds, scalars, links, words, places and times, each for as long as the entity has
 * it. If several brokers have an entity, the version of the first broker takes precedence until it is
 * deleted. Each function is part of a transaction that `catalogue.ts` starts.
 */
import type { Json } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { sameJson } from '#ngsi-ld/values/json.ts'
import type { Deriving } from './derive.ts'
import { kindNames, kinds, kindsOf, paths } from './entity-kinds.ts'
import { bareObservation, type Facts, factsOf, type StoredScalar } from './facts.ts'
import type { Naming } from './naming.ts'
import type { Statements } from './statements.ts'

/** An entity as a broker sent it. `EntityState` of the contract satisfies this. */
export interface BrokerEntity {
  readonly id: string
  /** Canonical names. */
  readonly types: readonly string[]
  /** Normalized, with canonical names, without system attributes. */
  entity(): Entity
  /** This entity as JSON text. */
  text(): string
  /** createdAt, ms. If the broker does not send it, when the entity was first received. */
  times(): { readonly created: number }
}

export interface Difference {
  readonly added: number
  readonly changed: number
  readonly removed: number
}

/** The broker that takes precedence for a node, and the kinds of its version. */
interface NodeRow {
  readonly prime: number | null
  readonly kinds: number
}

export interface EntryRow {
  readonly kinds: number
  readonly generation: number
  readonly created: number
  readonly doc: string
}

/** The entry of the first broker that has a node. */
type FirstEntry = Pick<EntryRow, 'kinds' | 'doc'> & { readonly b: number }

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

  const nodeOf = (n: number): NodeRow => sql.nodeRow.get(n) as NodeRow
  const firstOf = (n: number) => sql.firstEntry.get(n) as FirstEntry | undefined

  /** Writes the rows of a node from the entry that takes precedence. */
  function writeNode(n: number, { prime, kinds: before }: NodeRow, first: FirstEntry | undefined): void {
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
    const node = nodeOf(n)
    if (node.prime === b) writeNode(n, node, firstOf(n))
    return 'removed'
  }

  function remove(b: number, id: string): keyof Difference | undefined {
    const n = naming.known(id)
    return n === undefined ? undefined : drop(b, n)
  }

  return Object.freeze({
    /** Writes an entity, or removes it if none of its types is indexed. */
    put(b: number, sent: BrokerEntity, generation: number): keyof Difference | undefined {
      const bits = kindsOf(sent.types)
      if (bits === 0) return remove(b, sent.id)
      const n = naming.node(sent.id)
      const known = sql.entry.get(n, b) as EntryRow | undefined
      // An observation keeps only its relationships and time, because its values change too often.
      const isBare = (bits & ~kinds.observation) === 0
      const doc = isBare ? JSON.stringify(bareObservation(sent.entity())) : sent.text()
      if (known !== undefined && known.doc === doc && known.kinds === bits) {
        if (known.generation !== generation) sql.touchEntry.run(generation, n, b)
        return undefined
      }
      sql.putEntry.run(n, b, bits, generation, sent.times().created, doc)
      count(b, bits & ~(known?.kinds ?? 0), 1)
      count(b, (known?.kinds ?? 0) & ~bits, -1)
      const node = nodeOf(n)
      // An entry of a broker without precedence affects no other row.
      if (node.prime === null || node.prime >= b) writeNode(n, node, { b, kinds: bits, doc })
      return known === undefined ? 'added' : 'changed'
    },
    remove,
    drop,
    /** Called at the start and end of a transaction; updates the tally per kind. */
    beginCount: (): void => counted.clear(),
    endCount(): void {
      for (const [b, kind, by] of counted.values()) if (by !== 0) sql.tally.run(b, kind, by)
    },
  })
}

/** Updates the rows of a node to match its facts. */
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
    const kept = new Map<string, readonly [number, StoredScalar]>()
    const before = new Set<string>()
    for (const row of sql.scalars.all(n) as [number, StoredScalar][]) {
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

  /** Returns whether a changed link may affect inherited places or words. */
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

  /** Returns whether the entity's own places or words changed. */
  function writeOwn(n: number, words: string, places: readonly Json[]): boolean {
    const before = (sql.own.get(n) as { words: string; places: string } | undefined) ?? {
      words: '',
      places: '[]',
    }
    if (before.words === words && sameJson(JSON.parse(before.places) as Json, places)) return false
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
    /** Returns whether the node's places or words, or those of linked nodes, may change. */
    write(n: number, before: number, after: number, facts: Facts | undefined): boolean {
      writeKinds(n, before, after)
      writeScalars(n, facts?.scalars ?? [])
      writeSpan(n, facts)
      const isRelinked = writeLinks(n, facts?.links ?? [])
      const isOwnChanged = writeOwn(n, facts?.words ?? '', facts?.places ?? [])
      return isRelinked || isOwnChanged || before !== after
    },
  }
}

const scalarKey = (k: number, value: StoredScalar): string => {
  if (typeof value === 'number') return `${k} n${value}`
  return typeof value === 'string' ? `${k} t${value}` : `${k} b${value.join()}`
}

/** Links along which places and words are inherited. */
const leading: ReadonlySet<string> = new Set([
  paths.generatedBy,
  paths.isHostedBy,
  paths.observes,
  paths.streamObserves,
  paths.relativePlace,
])
