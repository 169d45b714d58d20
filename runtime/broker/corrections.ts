/**
 * Corrections of one entity's history as a reader applies them: what was erased is not there, and an instance that was
 * replaced is what it was replaced by, under the id it always had.
 */
import { dateTimeToMs } from '#ngsi-ld/datetime.ts'
import type { AttributeInstance } from '#ngsi-ld/entity.ts'
import type { TimedInstance } from '#ngsi-ld/temporal.ts'
import type { HistoryEdits } from '#store/history-edits.ts'

export interface Corrections {
  /** True where nothing was ever corrected: statistics of whole chunks hold. */
  readonly isEmpty: boolean
  /** Whether something recorded under a log number is erased. */
  isRecordErased(name: string, dataset: string, number: number): boolean
  /** Whether an observation committed at a time is erased. */
  isObservationErased(name: string, dataset: string, modifiedAt: number): boolean
  /** The instance as it is now; undefined when it was removed. */
  corrected(instance: TimedInstance): TimedInstance | undefined
  /** Log number up to which everything of the entity was erased; 0 when it never was. */
  readonly erasedNumber: number
}

export function correctionsOf(store: HistoryEdits, rid: number): Corrections {
  const edits = new Map(store.edits(rid).map((row) => [row.instance, row]))
  const erased = store.erased(rid)
  const fits =
    (name: string, dataset: string) =>
    (row: { readonly name: string; readonly dataset: string }): boolean =>
      row.name === '' || (row.name === name && (row.dataset === '*' || row.dataset === dataset))
  return {
    isEmpty: edits.size === 0 && erased.length === 0,
    isRecordErased: (name, dataset, number) =>
      erased.some((row) => fits(name, dataset)(row) && number <= row.n),
    isObservationErased: (name, dataset, modifiedAt) =>
      erased.some((row) => fits(name, dataset)(row) && modifiedAt <= row.at),
    corrected(instance) {
      const edit = edits.get(instance.instanceId)
      if (edit === undefined) return instance
      if (edit.body === null) return undefined
      const body = JSON.parse(edit.body) as AttributeInstance
      const { instanceId, createdAt, number } = instance
      const logged = number === undefined ? {} : { number }
      const observedAt = dateTimeToMs(body.observedAt ?? '')
      const times = { createdAt, modifiedAt: edit.at, ...(observedAt === undefined ? {} : { observedAt }) }
      return { instance: body, instanceId, ...times, ...logged }
    },
    erasedNumber: erased.find(({ name }) => name === '')?.n ?? 0,
  }
}
