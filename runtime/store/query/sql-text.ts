/**
 * SQL fragments with their parameters, the building blocks of queries. Values are always bound.
 */

import type { SqlValue } from '#store/chunks/sql-value.ts'
import type { ColumnPart } from '#store/entities/known-columns.ts'

export interface SqlCondition {
  /** Together they list every rid that may match; absent when no index can. */
  readonly arms?: readonly Arm[]
  readonly armsExact: boolean
  /** True when every arm lists ascending rids without repetition. */
  readonly ordered: boolean
  /** Tests d.rid cheaply. Absent when only the predicate can decide. */
  readonly probe?: Probe
  readonly probeExact: boolean
  /** Typical selectivity of such conditions; lower is counted first. */
  readonly rank: number
  /** Refines rows of the arms, so that fewer documents are read. */
  readonly refine?: Refine
  /** True when refinement rejects almost nothing, so that counting rows is enough. */
  readonly isTight?: boolean
}

/** SQL text and its positional parameters. */
export interface Sql {
  readonly text: string
  readonly params: readonly SqlValue[]
}

/** A condition on d.rid. */
export interface Probe extends Sql {
  /** The type that it tests, if it tests nothing else. */
  readonly type?: number
}

/** `SELECT d.rid FROM <from> WHERE <where>`; `from` names its table d. */
export interface Arm {
  /** Columns of d that its rows contain beside the rid, for refinement. */
  readonly columns?: string
  readonly from: string
  readonly where: string
  /** Parameters of `from`, then those of `where`. */
  readonly params: readonly SqlValue[]
  /** The rids of the arm, if known without a query. */
  readonly rids?: readonly number[]
  /** The part of a column that it lists with values, if the column may be in memory. */
  readonly part?: ColumnPart
  /** True when each of its rows matches without refinement. */
  readonly isSure?: boolean
}

/** The rid and the columns of the arm. */
export type ArmRow = readonly [rid: number, ...columns: readonly SqlValue[]]

/**
 * Returns true if the row's entity matches, false if this row gives no match, undefined if only the document
 * can decide. The row is reused and must not be kept.
 */
export type Refine = (row: ArmRow) => boolean | undefined

/** Joins fragments, in parentheses if there are several. */
export function joined(parts: readonly Sql[], operator: string): Sql {
  const text = parts.map((part) => part.text).join(operator)
  return { text: parts.length > 1 ? `(${text})` : text, params: parts.flatMap((part) => part.params) }
}

/** An arm that lists known rids. */
export function listArm(rids: readonly number[]): Arm {
  return {
    from: '(SELECT value AS rid FROM json_each(?)) d',
    where: '1',
    // Serialized on demand: most lists are filtered in memory and never queried.
    get params() {
      return [JSON.stringify(rids)]
    },
    rids,
  }
}

/** The first text after all texts with this prefix, in code point order; undefined when there is none. */
export function afterPrefix(prefix: string): string | undefined {
  const characters = Array.from(prefix)
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const code = last.codePointAt(0)!
    // UTF-8 texts contain no surrogates.
    if (code < 0x10ffff)
      return characters.join('') + String.fromCodePoint(code === 0xd7ff ? 0xe000 : code + 1)
  }
  return undefined
}
