/**
 * Compiles comparisons of first-level values to ranges of the scalar index. The index stores the beginning of
 * long texts, and times as their texts. A range may therefore be wider than the comparison; it is then marked
 * inexact, and it never misses a match.
 */

import { type Interval, type QueryComparison, type QueryMatch, scalarTermOf } from '#ngsi-ld/query/query.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'
import { indexedPrefix, indexedText, indexedTextMax, scalarKinds } from '#store/entities/entity-index.ts'
import type { NumberRange } from '#store/entities/number-pairs.ts'
import { type Arm, afterPrefix, joined, type Refine, type Sql } from './sql-text.ts'

/** Arms whose rows have a value, except those that only mark an attribute with several values. */
export interface ScalarArms {
  readonly arms: readonly Arm[]
  readonly exact: boolean
  readonly ordered: boolean
  /** Present when one rid can be tested without scanning a range. */
  readonly probe?: Sql
  readonly refine?: Refine
  /** True when nearly all rows belong to matching entities. */
  readonly isTight: boolean
}

/** Undefined for !=, because no index narrows it. */
export function comparisonArms(term: QueryComparison, name: number): ScalarArms | undefined {
  const scalar = scalarTermOf(term)!
  if (scalar.negated) return undefined
  const spans = scalar.intervals.map((interval) => spanOf(interval, scalar.equality))
  const exact = spans.every((span) => span.exact)
  const points = spans.map((span) => span.point)
  if (!points.every((point) => point !== undefined)) {
    return { arms: spans.map((span) => scalarArm(name, span)), exact, ordered: false, isTight: true }
  }
  const kinds = [...new Set(spans.map((span) => span.kind))]
  const lists = kinds.map((kind) => {
    const alike = spans.filter((span) => span.kind === kind)
    const text = `value IN (${alike.map(() => '?').join()})`
    return {
      kind,
      text,
      params: alike.map((span) => span.point!),
      ranges: alike.flatMap(({ ranges }) => ranges),
    }
  })
  const probes = lists.map(({ kind, text, params }) => ({
    text: `(SELECT 1 FROM scalar k WHERE k.name = ? AND k.kind = ? AND k.${text} AND k.rid = d.rid)`,
    params: [name, kind, ...params],
  }))
  return {
    arms: lists.map((list) => scalarArm(name, { ...list, text: `d.${list.text}` })),
    exact,
    ordered: spans.length === 1,
    isTight: true,
    probe: joined(probes, ' OR '),
  }
}

/**
 * Combines two comparisons that bound one attribute from both sides into one range. A second arm lists
 * attributes with several values, which may satisfy the comparisons with different values. Undefined for any
 * other pair.
 */
export function betweenArms(
  one: QueryComparison,
  other: QueryComparison,
  name: number,
): ScalarArms | undefined {
  const [low, high] = one.operator.startsWith('>') ? [one, other] : [other, one]
  if (!low.operator.startsWith('>') || !high.operator.startsWith('<')) return undefined
  const [from, to] = [low, high].map((term) => spanOf(scalarTermOf(term)!.intervals[0]!, false)) as [
    Span,
    Span,
  ]
  if (from.kind !== to.kind) return undefined
  const range = {
    kind: from.kind,
    text: `${from.text} AND ${to.text}`,
    params: [...from.params, ...to.params],
    ranges: from.ranges.map((range, i) => ({ ...to.ranges[i]!, low: range.low, lowOpen: range.lowOpen })),
  }
  const several = {
    ...scalarArm(name, { kind: scalarKinds.several, text: '', params: [], ranges: [] }),
    columns: 'NULL',
  }
  const exact = from.exact && to.exact
  return {
    arms: [scalarArm(name, range), several],
    exact: false,
    ordered: false,
    isTight: true,
    refine: ([, value]) => (exact && value !== null ? true : undefined),
  }
}

/**
 * Lists texts with the literal prefix of the pattern. Refinement rejects a complete text that does not match
 * without reading its entity.
 */
export function matchArms(term: QueryMatch, name: number): ScalarArms | undefined {
  if (term.negated) return undefined
  const pattern = compilePattern(term.pattern)
  const prefix = indexedPrefix(pattern.prefix)
  const bounds = { low: prefix, high: afterPrefix(prefix), highOpen: true }
  return {
    arms: [scalarArm(name, spanOfBounds(scalarKinds.text, bounds, false))],
    exact: false,
    ordered: false,
    isTight: false,
    refine: ([, text]) =>
      typeof text === 'string' && text.length < indexedTextMax - 1 && !pattern.test(text) ? false : undefined,
  }
}

function scalarArm(name: number, { kind, ranges, ...values }: Omit<Span, 'exact'>): Arm {
  const where = values.text === '' ? '' : ` AND ${values.text}`
  return {
    columns: 'd.value',
    from: 'scalar d',
    where: `d.name = ? AND d.kind = ?${where}`,
    params: [name, kind, ...values.params],
    ...(ranges.length === 0 ? {} : { part: { column: { name, kind }, ranges } }),
  }
}

interface Span extends Sql {
  readonly kind: number
  readonly exact: boolean
  /** The single value, if the interval has only one. */
  readonly point?: number | string
  /** This interval as number ranges; empty for texts. */
  readonly ranges: readonly NumberRange[]
}

/** Converts an interval of values to a range of index rows; the range is wider where the index is coarser. */
function spanOf(interval: Interval, equality: boolean): Span {
  const { type, low, high } = interval
  switch (type) {
    case 'number':
      return spanOfBounds(scalarKinds.number, interval as Bounds, true)
    case 'boolean':
      return spanOfBounds(scalarKinds.boolean, { low: Number(low), high: Number(high) }, true)
    case 'string':
      return textSpan(interval as TextBounds, equality)
    case 'date':
      return spanOfBounds(scalarKinds.text, { low: low as string, high: high as string }, false)
    default: {
      // Texts of equal times differ within a second, so the bounds are whole seconds.
      const [from, to] = type === 'dateTime' ? [0, 19] : [11, 19]
      const second = (ms: number | undefined): string | undefined =>
        ms === undefined ? undefined : msToDateTime(ms).slice(from, to)
      const last = second(high as number | undefined)
      return spanOfBounds(
        scalarKinds.text,
        { low: second(low as number | undefined), high: last && afterPrefix(last) },
        false,
      )
    }
  }
}

interface Bounds {
  readonly low?: number | string | undefined
  readonly high?: number | string | undefined
  readonly lowOpen?: boolean
  readonly highOpen?: boolean
}

type TextBounds = Bounds & { readonly low?: string; readonly high?: string }

/**
 * Index range of a text interval. The index stores the beginning of a text, and order comparisons never match
 * relationships although the index has their URIs. A bound shorter than the indexed length compares as with
 * the whole text.
 */
function textSpan({ low, high, lowOpen, highOpen }: TextBounds, equality: boolean): Span {
  const isShort = (text: string | undefined): boolean =>
    text === undefined || text.length < indexedTextMax - 1
  const exact = equality && isShort(low) && isShort(high)
  if (low !== undefined && low === high)
    return spanOfBounds(scalarKinds.text, { low: indexedText(low), high: indexedText(low) }, exact)
  const bounds: Bounds = isShort(low)
    ? { low, high, lowOpen: lowOpen === true, highOpen: highOpen === true }
    : { low: indexedPrefix(low!), high, highOpen: highOpen === true }
  return spanOfBounds(scalarKinds.text, bounds, exact)
}

function spanOfBounds(kind: number, { low, high, lowOpen, highOpen }: Bounds, exact: boolean): Span {
  const range = { low: low ?? -Infinity, high: high ?? Infinity, lowOpen, highOpen }
  const ranges = kind === scalarKinds.text ? [] : [range as NumberRange]
  if (low !== undefined && low === high)
    return { kind, exact, point: low, text: 'd.value = ?', params: [low], ranges }
  const texts = [
    ...(low === undefined ? [] : [lowOpen === true ? 'd.value > ?' : 'd.value >= ?']),
    ...(high === undefined ? [] : [highOpen === true ? 'd.value < ?' : 'd.value <= ?']),
  ]
  return {
    kind,
    exact,
    text: texts.join(' AND '),
    params: [low, high].filter((bound) => bound !== undefined),
    ranges,
  }
}
