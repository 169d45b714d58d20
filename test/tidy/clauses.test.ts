/** What is said to be built of NGSI-LD is shown by tests that exist. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { clauses } from '#test/spec/ngsi-ld/clauses.ts'

const folder = join(import.meta.dirname, '..')

it('every clause that is done names a test', () => {
  expect(clauses.length).toBeGreaterThan(30)
  expect(clauses.filter(({ state, tests }) => state === 'done' && tests.length === 0)).toEqual([])
})

it('every clause that is not done says nothing is shown, every one done in part what is missing', () => {
  expect(clauses.filter(({ state, tests }) => state === 'not' && tests.length > 0)).toEqual([])
  expect(clauses.filter(({ state, note }) => state === 'partial' && note === undefined)).toEqual([])
})

it('every test that is named is there', () => {
  const named = clauses.flatMap(({ tests }) => tests)
  expect(named.filter((test) => !test.endsWith('.test.ts') || !existsSync(join(folder, test)))).toEqual([])
})
