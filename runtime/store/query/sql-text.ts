/**
 * Pieces of SQL text with their parameters, from which queries are put together. Values are always bound.
 */

import type { SqlValue } from '#store/chunks/sql-value.ts'
import type { ColumnPart } from '#store/entities/known-columns.ts'

export interface Condition {
  /** Together they list every rid that may satisfy; absent when no index can. */
  readonly arms?: readonly Arm[]
  readonly armsExact: boolean
  /** True when every arm lists ascending rids without repetition. */
  readonly ordered: boolean
  /** Asks d.rid; cheap. Absent when only the predicate knows. */
  readonly probe?: Probe
  readonly probeExact: boolean
  /** How selective such conditions tend to be; lower is counted first. */
  readonly rank: number
  /** A closer look at the rows of the arms, which leaves fewer documents to read. */
  readonly look?: Look
  /** True when a closer look rejects next to nothing: to know how many remain, counting is enough. */
  readonly isTight?: boolean
}

/** SQL text and its positional parameters. */
export interface Sql {
  readonly text: string
  readonly params: readonly SqlValue[]
}

/** A condition on d.rid. */
export interface Probe extends Sql {
  /** The type it asks for, where it is that alone. */
  readonly type?: number
}

/** `SELECT d.rid FROM <from> WHERE <where>`; `from` names its table d. */
export interface Arm {
  /** What its rows say beside the rid, for a closer look: columns of d. */
  readonly columns?: string
  readonly from: string
  readonly where: string
  /** Those of `from`, then those of `where`. */
  readonly params: readonly SqlValue[]
  /** What it lists, where that is known without asking. */
  readonly rids?: readonly number[]
  /** What of a column it lists with its values, where that may be in memory. */
  readonly part?: ColumnPart
  /** True when each of its rows satisfies without a closer look. */
  readonly isSure?: boolean
}

/** The rid and the columns of the arm. */
export type ArmRow = readonly [rid: number, ...columns: readonly SqlValue[]]

/** What a row says of its entity: it satisfies, this row is no reason that it would, or (undefined) it may. The row is not kept. */
export type Look = (row: ArmRow) => boolean | undefined

/** Pieces side by side, in parentheses when they are several. */
export function joined(parts: readonly Sql[], operator: string): Sql {
  const text = parts.map((part) => part.text).join(operator)
  return { text: parts.length > 1 ? `(${text})` : text, params: parts.flatMap((part) => part.params) }
}

/** Rids that are known already, as an arm. */
export function listArm(rids: readonly number[]): Arm {
  return {
    from: '(SELECT value AS rid FROM json_each(?)) d',
    where: '1',
    // Most are looked through here, and the tables never asked about them.
    get params() {
      return [JSON.stringify(rids)]
    },
    rids,
  }
}

/** The first text behind all texts that begin so, in code point order; undefined when none is. */
export function afterPrefix(prefix: string): string | undefined {
  const characters = Array.from(prefix)
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const code = last.codePointAt(0)!
    // Surrogates are no characters of a text in UTF-8.
    if (code < 0x10ffff)
      return characters.join('') + String.fromCodePoint(code === 0xd7ff ? 0xe000 : code + 1)
  }
  return undefined
}
