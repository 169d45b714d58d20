/** No source file uses a form that hides its members, and the check can fail. */
import { describe, expect, it } from 'vitest'
import { hidingForms } from './forms.ts'
import { file, wholeTree } from './tree.ts'

describe('source files', () => {
  it('write members, parameters and variables one by one', () => expect(hidingForms(wholeTree())).toEqual([]))
})

describe('the check', () => {
  it.each([
    'f({ ...{ a, b }, c })',
    'const f = (...[a, b]: Parameters<F>) => a + b',
    'function f(...all: [a: number, b: string]) {}',
    'let [a, b] = [0, 1]',
    'function f(this: A) { return this.b }',
    'const a = { b() { return this.c } }',
  ])('sees %s', (text) => {
    expect(hidingForms([file('runtime/a.ts', `\n${text}`)])).toEqual([
      expect.stringMatching(/^runtime\/a\.ts:2 /),
    ])
  })

  it.each([
    'f({ ...row, c, ...(d ? { e } : {}) })',
    'const f = (...all: readonly [string, number][]) => all',
    'const f = (...all: Parameters<F>) => g(...all)',
    'let [a] = list',
    'class A { b() { return () => this.c } }',
  ])('passes %s', (text) => expect(hidingForms([file('runtime/a.ts', text)])).toEqual([]))
})
