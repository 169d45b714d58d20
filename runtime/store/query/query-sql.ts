/**
 * Compiles an entity search to SQL conditions over the index tables. A condition can list the rids that may
 * match (its arms) or test one rid (its probe). For both it states whether the result is exact or a superset
 * that the predicate must test. User text never becomes SQL: the SQL text is built from the syntax tree, and
 * values are bound.
 */

import { canonicalOf } from '#ngsi-ld/context/core-context.ts'
import type { EntitySelector, TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import type { GeoQuery } from '#ngsi-ld/query/geo-query.ts'
import {
  isPlain,
  isSystemTime,
  type QueryComparison,
  type QueryScalar,
  type QueryTerm,
  type QueryTree,
  type QueryValue,
} from '#ngsi-ld/query/query.ts'
import type { ScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import type { EntitySearch } from '#ngsi-ld/query/search.ts'
import { indexedTextMax, scalarKinds, scopeName } from '#store/entities/entity-index.ts'
import { allFit, asOfNow, testOf } from './newer-values.ts'
import { geoCondition, type SqlPorts } from './place-sql.ts'
import { betweenArms, comparisonArms, matchArms, type ScalarArms } from './scalar-sql.ts'
import { type Arm, afterPrefix, joined, type Sql, type SqlCondition } from './sql-text.ts'

/** The conditions whose conjunction, together with the id test of idPattern, is equivalent to the search. */
export function compileConditions(search: EntitySearch, ports: SqlPorts): readonly SqlCondition[] {
  const { selection, ids, idPattern, selectors, scope, attrs, q, geo } = search
  return [
    ...(ids === undefined ? [] : [idCondition(ids)]),
    ...(idPattern === undefined || idPattern.prefix === '' ? [] : [prefixCondition(idPattern.prefix)]),
    ...(q === undefined
      ? []
      : q.kind === 'and'
        ? conjunctConditions(q.parts, ports)
        : [treeCondition(q, ports)]),
    ...(geo === undefined ? [] : [placeCondition(geo, ports)]),
    ...(scope === undefined ? [] : [scopeCondition(scope, ports)]),
    ...(selectors === undefined ? [] : [anyOf(selectors.map((one) => selectorCondition(one, ports)))]),
    ...(attrs === undefined ? [] : [anyOf(attrs.map((name) => existenceCondition(name, ports)))]),
    ...(selection === undefined ? [] : typeConditions(selection, ports)),
  ]
}

// ---- Combining

/** SQLite limits compound statements, and each arm repeats all probes. */
const armsMax = 32

const ranks = {
  id: 0,
  equality: 1,
  between: 3,
  range: 4,
  prefix: 5,
  existence: 6,
  type: 7,
} as const

/** Matches nothing: no entity has the name. */
const never: SqlCondition = {
  arms: [{ from: 'entity d', where: '0', params: [] }],
  armsExact: true,
  ordered: true,
  probe: { text: '0', params: [] },
  probeExact: true,
  rank: 0,
}

/** Only the predicate can decide. */
const unknown: SqlCondition = { armsExact: false, ordered: false, probeExact: false, rank: 9 }

function anyOf(parts: readonly SqlCondition[]): SqlCondition {
  const live = parts.filter((part) => part !== never)
  if (live.length === 0) return never
  if (live.length === 1) return live[0]!
  const arms = live.every((part) => part.arms !== undefined) ? live.flatMap((part) => part.arms!) : undefined
  const probes = live.every((part) => part.probe !== undefined) ? live.map((part) => part.probe!) : undefined
  return {
    ...(arms === undefined || arms.length > armsMax ? {} : { arms }),
    armsExact: live.every((part) => part.armsExact),
    ordered: live.every((part) => part.ordered),
    ...(probes === undefined ? {} : { probe: joined(probes, ' OR ') }),
    probeExact: live.every((part) => part.probeExact),
    rank: Math.max(...live.map((part) => part.rank)),
  }
}

/** A conjunction within an OR: the rids of the most selective part, tested by the probes of the others. */
function allOf(parts: readonly SqlCondition[]): SqlCondition {
  if (parts.includes(never)) return never
  const probes = parts.every((part) => part.probe !== undefined)
    ? parts.map((part) => part.probe!)
    : undefined
  const base = parts
    .filter((part) => part.arms !== undefined)
    .toSorted((a, b) => driverOrder(a) - driverOrder(b))[0]
  const others = parts.filter((part) => part !== base)
  const queried = joined(
    others.flatMap((part) => part.probe ?? []),
    ' AND ',
  )
  const arms =
    queried.text === ''
      ? base?.arms
      : base?.arms?.map(({ columns, from, where, params }) => ({
          ...(columns === undefined ? {} : { columns }),
          from,
          where: `${where} AND ${queried.text}`,
          params: [...params, ...queried.params],
        }))
  return {
    ...(arms === undefined ? {} : { arms }),
    armsExact: base?.armsExact === true && others.every((part) => part.probeExact),
    ordered: base?.ordered === true,
    ...(probes === undefined ? {} : { probe: joined(probes, ' AND ') }),
    probeExact: parts.every((part) => part.probeExact),
    rank: base?.rank ?? unknown.rank,
  }
}

/** A part without an exact probe must drive, otherwise the conjunction is inexact. */
function driverOrder(condition: SqlCondition): number {
  return condition.rank + (condition.probeExact ? 10 : 0)
}

// ---- Ids and types

function idCondition(ids: readonly string[]): SqlCondition {
  const list = JSON.stringify(ids)
  return {
    arms: [{ from: 'entity d', where: 'd.id IN (SELECT value FROM json_each(?))', params: [list] }],
    armsExact: true,
    ordered: false,
    probe: {
      text: '(SELECT 1 FROM entity x WHERE x.rid = d.rid AND x.id IN (SELECT value FROM json_each(?)))',
      params: [list],
    },
    probeExact: true,
    rank: ranks.id,
  }
}

/** The ids that can match a pattern; the caller tests the pattern itself on each id. */
function prefixCondition(prefix: string): SqlCondition {
  const after = afterPrefix(prefix)
  const bounds: Sql =
    after === undefined
      ? { text: 'd.id >= ?', params: [prefix] }
      : { text: 'd.id >= ? AND d.id < ?', params: [prefix, after] }
  return {
    arms: [{ from: 'entity d', where: bounds.text, params: bounds.params }],
    armsExact: true,
    ordered: false,
    probe: { text: '1', params: [] },
    probeExact: true,
    rank: ranks.prefix,
  }
}

/** A single selector; the predicate tests its pattern. */
function selectorCondition({ types, ids, idPattern }: EntitySelector, ports: SqlPorts): SqlCondition {
  const parts = [
    ...(ids === undefined ? [] : [idCondition(ids)]),
    ...(types === undefined ? [] : typeConditions(types, ports)),
  ]
  const condition = parts.length === 0 ? unknown : allOf(parts)
  if (idPattern === undefined || ids !== undefined || condition === never) return condition
  return { ...condition, armsExact: false, probeExact: false }
}

// ---- Scopes

/** Scopes are texts of the scalar index: an equal value, or a common prefix. */
function scopeCondition(scope: ScopeQuery, ports: SqlPorts): SqlCondition {
  if (scope.kind === 'or') return anyOf(scope.parts.map((part) => scopeCondition(part, ports)))
  if (scope.kind === 'and') return allOf(scope.parts.map((part) => scopeCondition(part, ports)))
  const { levels, below } = scope
  const name = ports.nameOf(scopeName)
  if (name === undefined) return never
  const arm = (text: string, ...params: readonly string[]): Arm => ({
    from: 'scalar d',
    where: `d.name = ? AND d.kind = ?${text}`,
    params: [name, scalarKinds.text, ...params],
  })
  const wild = levels.indexOf('+')
  const start = ['', ...(wild < 0 ? levels : levels.slice(0, wild))].join('/')
  // The index stores only the beginning of a text, so any scope may match.
  if (start.length >= indexedTextMax - 1) return { ...unknown, arms: [arm('')], rank: ranks.existence }
  const itself = arm(' AND d.value = ?', start)
  const beneath = arm(' AND d.value >= ? AND d.value < ?', `${start}/`, afterPrefix(`${start}/`)!)
  const arms = levels.length === 0 ? [arm('')] : wild >= 0 ? [beneath] : below ? [itself, beneath] : [itself]
  return { ...unknown, arms, rank: wild < 0 && !below ? ranks.equality : ranks.prefix }
}

/** Each part of a conjunction is a separate condition, so that each may drive. */
function typeConditions(selection: TypeSelection, ports: SqlPorts): readonly SqlCondition[] {
  if (selection.kind === 'any') return []
  if (selection.kind === 'and') return selection.parts.flatMap((part) => typeConditions(part, ports))
  return [typeCondition(selection, ports)]
}

function typeCondition(selection: TypeSelection, ports: SqlPorts): SqlCondition {
  if (selection.kind === 'any') return unknown
  if (selection.kind === 'or') return anyOf(selection.parts.map((part) => typeCondition(part, ports)))
  if (selection.kind === 'and') return allOf(selection.parts.map((part) => typeCondition(part, ports)))
  const type = ports.nameOf(selection.name)
  const condition = keyCondition('entity_type', 'type', type, ranks.type)
  return type === undefined ? never : { ...condition, probe: { ...condition.probe!, type } }
}

function existenceCondition(name: string, ports: SqlPorts): SqlCondition {
  return keyCondition('has_attribute', 'name', ports.nameOf(name), ranks.existence)
}

/** A table of (key, rid): lists the rids of one key in order, or tests one rid. */
function keyCondition(table: string, column: string, key: number | undefined, rank: number): SqlCondition {
  if (key === undefined) return never
  return {
    arms: [{ from: `${table} d`, where: `d.${column} = ?`, params: [key] }],
    armsExact: true,
    ordered: true,
    // A scalar subquery, because SQLite may turn EXISTS into a join and let it drive.
    probe: { text: `(SELECT 1 FROM ${table} k WHERE k.${column} = ? AND k.rid = d.rid)`, params: [key] },
    probeExact: true,
    rank,
  }
}

// ---- The q language

function treeCondition(tree: QueryTree, ports: SqlPorts): SqlCondition {
  if (tree.kind === 'or') return anyOf(tree.parts.map((part) => treeCondition(part, ports)))
  if (tree.kind === 'and') return allOf(conjunctConditions(tree.parts, ports))
  return termCondition(tree, ports)
}

/**
 * Compiles each part to a condition, but merges two bounds of the same attribute: together they are far more
 * selective.
 */
function conjunctConditions(parts: readonly QueryTree[], ports: SqlPorts): readonly SqlCondition[] {
  const [part, ...others] = parts
  if (part === undefined) return []
  for (const other of others) {
    const both = betweenCondition(part, other, ports)
    if (both !== undefined)
      return [
        both,
        ...conjunctConditions(
          others.filter((one) => one !== other),
          ports,
        ),
      ]
  }
  return [treeCondition(part, ports), ...conjunctConditions(others, ports)]
}

function betweenCondition(one: QueryTree, other: QueryTree, ports: SqlPorts): SqlCondition | undefined {
  if (one.kind !== 'compare' || other.kind !== 'compare') return undefined
  const attribute = one.path.names[0]!
  if (!isPlain(one.path) || !isPlain(other.path) || other.path.names[0] !== attribute) return undefined
  const name = ports.nameOf(attribute)
  if (name === undefined) return never
  const found = betweenArms(one, other, name)
  if (found === undefined) return undefined
  const superset = { ...existenceCondition(attribute, ports), armsExact: false, probeExact: false }
  const fresh = ports.unwritten?.(attribute, allFit([testOf(one), testOf(other)]))
  return {
    ...superset,
    ...asOfNow(found, fresh, () => ports.hasSeveral?.(name) ?? true),
    rank: ranks.between,
  }
}

function termCondition(term: QueryTerm, ports: SqlPorts): SqlCondition {
  if (isSystemTime(term.path)) return unknown
  const exists = existenceCondition(term.path.names[0]!, ports)
  if (term.kind === 'absent') return isPlain(term.path) ? absenceOf(exists) : unknown
  if (exists === never || (term.kind === 'exists' && isPlain(term.path))) return exists
  const superset: SqlCondition = { ...exists, armsExact: false, probeExact: false }
  if (!isPlain(term.path) || term.kind === 'exists') return superset
  const name = ports.nameOf(term.path.names[0]!)!
  const found =
    term.kind === 'match'
      ? matchArms(term, name)
      : mayNameTerm(term, ports)
        ? namedArms(term, name)
        : comparisonArms(term, name)
  if (found === undefined) return superset
  const queried = term.kind === 'compare' && mayNameTerm(term, ports) ? withNames(term) : term
  const fresh = ports.unwritten?.(term.path.names[0]!, testOf(queried))
  const probe = found.probe !== undefined && fresh === undefined ? found.probe : superset.probe!
  return {
    ...asOfNow(found, fresh, () => ports.hasSeveral?.(name) ?? true),
    probe,
    probeExact: found.exact && probe === found.probe,
    rank: found.probe === undefined ? ranks.range : ranks.equality,
  }
}

/**
 * True if values of a VocabProperty may match. The index stores their names, which can differ from the IRIs
 * that are compared. While no entity has a VocabProperty, texts have only their literal meaning.
 */
function mayNameTerm({ operator, value }: QueryComparison, ports: SqlPorts): boolean {
  if (operator !== '==' && operator !== '!=') return false
  const isText = ({ kind }: QueryScalar): boolean => kind === 'string' || kind === 'name'
  return scalarsIn(value).some(isText) && ports.nameOf('VocabProperty') !== undefined
}

/** Adds the short names of IRIs to the compared texts. */
function withNames(term: QueryComparison): QueryComparison {
  if (term.value.kind === 'range') return term
  const names = scalarsIn(term.value).flatMap((scalar): readonly QueryScalar[] => {
    const text = scalar.kind === 'string' || scalar.kind === 'name' ? scalar.value : ''
    const name = canonicalOf(text)
    return name === text ? [] : [{ kind: 'string', value: name }]
  })
  return names.length === 0
    ? term
    : { ...term, value: { kind: 'list', items: [...scalarsIn(term.value), ...names] } }
}

const scalarsIn = (value: QueryValue): readonly QueryScalar[] =>
  value.kind === 'list' ? value.items : value.kind === 'range' ? [value.low, value.high] : [value]

function namedArms(term: QueryComparison, name: number): ScalarArms | undefined {
  if (term.operator !== '==' || term.value.kind === 'range') return undefined
  const found = comparisonArms(withNames(term), name)
  return found && { ...found, exact: false }
}

function absenceOf(exists: SqlCondition): SqlCondition {
  if (exists === never) return { ...unknown, probe: { text: '1', params: [] }, probeExact: true }
  return {
    ...unknown,
    probe: { text: `${exists.probe!.text} IS NULL`, params: exists.probe!.params },
    probeExact: true,
  }
}

function placeCondition(geo: GeoQuery, ports: SqlPorts): SqlCondition {
  const exists = existenceCondition(geo.property, ports)
  return exists === never ? never : geoCondition(geo, exists, ports)
}
