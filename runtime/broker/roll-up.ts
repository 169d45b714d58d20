/**
 * Rolling up: the rows that stay of a chunk that retention removes, corrected as clients asked. Only numbers have any.
 */
import { decodeChunk } from '#store/chunk-codec.ts'
import type { History } from '#store/history.ts'
import type { HistoryEdits } from '#store/history-edits.ts'
import { hourMs, type RollUpRow } from '#store/roll-ups.ts'
import { correctionsOf } from './corrections.ts'
import { observedInstance } from './evolution-sources.ts'
import type { Names } from './names.ts'

export interface RollUpPorts {
  readonly history: History
  readonly edits: HistoryEdits
  readonly names: Names
}

/** Hours of the chunk of a stream that begins at `t0`. */
export function rollUpOf({ history, edits, names }: RollUpPorts, s: number, t0: number): RollUpRow[] {
  const chunk = history.chunkAt(s, t0)
  const stream = history.stream(s)
  if (chunk === undefined || stream === undefined) return []
  const { times, modified, values, shapes, shapeOf } = decodeChunk(chunk)
  const corrections = correctionsOf(edits, stream.rid)
  const name = names.text(stream.name)!
  const corrected = (i: number): [time: number, value: unknown] | undefined => {
    const one = { time: times[i]!, modified: modified[i]!, value: values[i]! }
    if (corrections.isEmpty) return [one.time, one.value]
    if (corrections.isObservationErased(name, stream.dataset, one.modified)) return undefined
    const instance = corrections.corrected(observedInstance(s, shapes[shapeOf?.[i] ?? 0]!, one))
    return instance === undefined ? undefined : [instance.observedAt ?? one.time, instance.instance.value]
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
