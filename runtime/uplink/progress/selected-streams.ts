/**
 * Whether what a stream holds would go up: by its attribute and its entity, as that is now or was when it was deleted. Where values
 * select, some of a history may be otherwise; nobody reads all of it to know how much waits. What is known is known for a while,
 * and so much is looked up in one go, so that a look at many streams takes no time from others.
 */
import { limits } from '#base/limits/limits.ts'
import type { Following } from '#broker/changes/change-feed.ts'
import type { UplinkSelection } from '#uplink/steps/uplink-selection.ts'

/** Begins a look; what it returns says of a stream number whether it is selected. One that is not known yet is not. */
export type SelectedStreams = () => (s: number) => boolean

export function createSelectedStreams(
  { streamOf, standing }: Pick<Following, 'streamOf' | 'standing'>,
  selection: UplinkSelection,
  monotonic: () => number,
): SelectedStreams {
  if (selection.takesAll) return () => () => true
  const known = new Map<number, { readonly is: boolean; readonly at: number }>()

  function isSelected(s: number): boolean {
    const stream = streamOf(s)
    if (stream === undefined || !selection.takesAttribute(stream.name)) return false
    const { id, type, rid } = stream
    return selection.takes((selection.dependsOnValues && standing(rid)) || { id, type })
  }

  return () => {
    const now = monotonic()
    let left = limits.uplinkStreamsPerCheck.value
    return (s) => {
      const before = known.get(s)
      const isKnown = before !== undefined && now - before.at < limits.uplinkRateMs.value
      if (isKnown || left-- <= 0) return before?.is === true
      const is = isSelected(s)
      known.delete(s)
      known.set(s, { is, at: now })
      if (known.size > limits.uplinkStreamsKnownMax.value) known.delete(known.keys().next().value!)
      return is
    }
  }
}
