/**
 * Sizes upkeep by share: how much of its limits it uses in one group. The share is halved after a group that
 * failed or took long, and doubled after a short one.
 */

import { limits } from '#base/limits/limits.ts'
import type { Stage } from './stage.ts'

/** One item of each limit on items. */
const shareMin = 2 ** -13

/** @param atStart from 0 to 1 */
export function createGroupShare(atStart = 1) {
  let share = atStart
  const scale = (factor: number): void => {
    share = Math.min(1, Math.max(shareMin, share * factor))
  }
  return Object.freeze({
    /** The share of a limit, rounded up. */
    of: (most: number): number => Math.ceil(most * share),
    /** Adapts the share when the group is on disk or undone. `tookMs` is the time of the work on it. */
    adapt(stage: Stage, tookMs = 0): void {
      stage.undone(() => scale(1 / 2))
      stage.published(() => {
        if (tookMs > limits.groupDecideMs.value) scale(1 / 2)
        else if (tookMs < limits.groupDecideMs.value / 2) scale(2)
      })
    },
  })
}
