/**
 * Roll-ups: hourly rows that remain of a chunk that retention removes, with corrections applied. Only numbers
 * have them.
 */

import type { Names } from '#broker/commit/interned-names.ts'
import { correctionsOf, replacementOf } from '#broker/history/corrections.ts'
import { decodeChunk } from '#store/chunks/chunk-codec.ts'
import type { HistoryEdits } from '#store/history/history-edits.ts'
import type { History } from '#store/history/history-rows.ts'
import { hourMs, type RollUpRow } from '#store/history/roll-ups.ts'

export interface RollUpPorts {
  readonly history: History
  readonly edits: HistoryEdits
  readonly names: Names
}

/** The hours of the chunk of a stream that begins at `t0`. */
export function rollUpOf({ history, edits, names }: RollUpPorts, s: number, t0: number): RollUpRow[] {
  const chunk = history.chunkAt(s, t0)
  const stream = history.stream(s)
  if (chunk === undefined || stream === undefined) return []
  const { times, modified, values } = decodeChunk(chunk)
  const own = correctionsOf(edits, stream.rid).ofStream(s, names.text(stream.name)!, stream.dataset)
  const corrected = (i: number): readonly [time: number, value: unknown] | undefined => {
    const [time, value] = [times[i]!, values[i]!]
    if (modified[i]! <= own.erasedUntil) return undefined
    const edit = own.editOf(time, value)
    if (edit === undefined) return [time, value]
    const now = replacementOf(edit, { createdAt: modified[i]! })
    return now === undefined ? undefined : [now.observedAt ?? time, now.instance.value]
  }
  const hours = new Map<number, RollUpRow>()
  for (let i = 0; i < times.length; i++) {
    const [time, value] = corrected(i) ?? []
    if (time === undefined || typeof value !== 'number') continue
    const hour = Math.floor(time / hourMs) * hourMs
    const known = hours.get(hour)
    hours.set(hour, {
      hour,
      count: (known?.count ?? 0) + 1,
      min: Math.min(known?.min ?? value, value),
      max: Math.max(known?.max ?? value, value),
      sum: (known?.sum ?? 0) + value,
      sumsq: (known?.sumsq ?? 0) + value * value,
    })
  }
  return [...hours.values()]
}
