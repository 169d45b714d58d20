/**
 * Erases the history of a deleted entity. Folded parts are removed with this commit; parts that are folded
 * later, from records already logged, stay hidden. Its last document stays until retention deletes it,
 * because pending notifications are rendered from it.
 */

import type { Stage } from '#broker/commit/stage.ts'
import type { History } from '#store/history/history-rows.ts'

export function forgetHistory(history: History, stage: Stage, rid: number): void {
  removeFolded(history, stage, rid)
  stage.write('history-born.clear', rid)
  stage.write('history-erased.put', rid, '', '*', Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
}

/** Removes chunks, roll-ups, folded change records and corrections of an entity. */
export function removeFolded(history: History, stage: Stage, rid: number): void {
  for (const { s } of history.streamsOf(rid)) {
    stage.write('chunk.erase', s, s)
    stage.write('rollup.erase', s)
  }
  stage.write('entity-history.erase', rid)
  stage.write('history-edit.clear', rid)
}
