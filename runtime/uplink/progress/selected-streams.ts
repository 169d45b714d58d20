/**
 * Whether an uplink selects a stream: by its attribute, and by its entity as it is now or was when it was
 * deleted. A selection by values may treat parts of a history differently; reading all of it only to measure
 * the backlog would cost too much. Results are cached for a while, and the lookups per check are bounded, so
 * that many streams do not stall the event loop.
 */
import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed, FollowedStream } from '#broker/changes/change-feed.ts'
import type { UplinkSelection } from '#uplink/steps/uplink-selection.ts'

/**
 * Begins a check. The returned function says whether a stream number is selected; unknown streams are not.
 */
export type SelectedStreams = () => (s: number) => boolean

export function createSelectedStreams(
  { streamOf, lastState }: Pick<ChangeFeed, 'streamOf' | 'lastState'>,
  selection: UplinkSelection,
  monotonic: () => number,
): SelectedStreams {
  if (selection.takesAll) return () => () => true
  const known = new Map<number, { readonly is: boolean; readonly at: number }>()

  function isSelected(stream: FollowedStream): boolean {
    if (!selection.takesAttribute(stream.name)) return false
    const { id, type, rid } = stream
    return selection.takes((selection.dependsOnValues && lastState(rid)) || { id, type })
  }

  return () => {
    const now = monotonic()
    let left = limits.uplinkStreamsPerCheck.value
    return (s) => {
      const before = known.get(s)
      const isKnown = before !== undefined && now - before.at < limits.uplinkRateMs.value
      if (isKnown || left-- <= 0) return before?.is === true
      const stream = streamOf(s)
      // A stream that is being created will be known at the next check.
      if (stream === undefined) return false
      const is = isSelected(stream)
      known.delete(s)
      known.set(s, { is, at: now })
      if (known.size > limits.uplinkStreamsKnownMax.value) known.delete(known.keys().next().value!)
      return is
    }
  }
}
