/**
 * Interned names: attribute and type names (core-compacted) have small numbers in the database. All of them are in
 * memory; a new one is written in the commit that first uses it.
 */
import type { Records } from '#store/records.ts'
import type { Stage } from './stage.ts'

export function createNames(records: Records) {
  const numbers = new Map<string, number>()
  const texts = new Map<number, string>()
  let last = 0
  for (const { i, text } of records.names()) {
    numbers.set(text, i)
    texts.set(i, text)
    last = Math.max(last, i)
  }
  return Object.freeze({
    /** The number of a known name. */
    find: (text: string) => numbers.get(text),
    text: (i: number) => texts.get(i),
    /** The number of a name, given one if it is new. */
    intern(stage: Stage, text: string): number {
      const known = numbers.get(text)
      if (known !== undefined) return known
      const i = ++last
      numbers.set(text, i)
      texts.set(i, text)
      stage.write('name.insert', i, text)
      stage.undone(() => {
        numbers.delete(text)
        texts.delete(i)
      })
      return i
    },
  })
}

export type Names = ReturnType<typeof createNames>
