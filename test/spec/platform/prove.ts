/** Runs one test per implemented row of a table; a row without a test is a type error. */
import { describe, expect, it } from 'vitest'
import { type BuiltKey, rowsOf, type Table } from './rows.ts'

export function prove<T extends Table>(
  table: T,
  proofs: Readonly<Record<BuiltKey<T>, () => Promise<void>>>,
): void {
  const builtRows = rowsOf(table).filter(({ absent, test }) => absent === undefined && test === undefined)
  describe(`${table} of the platform`, () => {
    for (const { key, name } of builtRows) it(name, (proofs as Record<string, () => Promise<void>>)[key])
    it('have a test each', () => expect(Object.keys(proofs)).toEqual(builtRows.map(({ key }) => key)))
  })
}
