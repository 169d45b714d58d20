/** Type expressions and entity selectors, case by case. */
import { describe, expect, it } from 'vitest'
import {
  matchesEntity,
  matchesType,
  parseEntitySelector,
  parseTypeSelection,
  printTypeSelection,
  renderEntitySelector,
  type TypeSelection,
  typeNamesOf,
} from './entity-selector.ts'

const expand = (term: string): string => (term.startsWith('s:') ? `https://s.org/${term.slice(2)}` : term)
const compact = (name: string): string => name.replace('https://s.org/', 's:')
const type = (name: string): TypeSelection => ({ kind: 'type', name })

describe('a type selection', () => {
  it.each<[string, TypeSelection, string]>([
    ['A', type('A'), 'A'],
    ['s:A', type('https://s.org/A'), 's:A'],
    ['https://s.org/A', type('https://s.org/A'), 's:A'],
    ['*', { kind: 'any' }, '*'],
    ['A,B', { kind: 'or', parts: [type('A'), type('B')] }, 'A,B'],
    ['A|B', { kind: 'or', parts: [type('A'), type('B')] }, 'A,B'],
    ['(Building|Tower)', { kind: 'or', parts: [type('Building'), type('Tower')] }, 'Building,Tower'],
    ['A;B', { kind: 'and', parts: [type('A'), type('B')] }, 'A;B'],
    ['(A;B),C', { kind: 'or', parts: [{ kind: 'and', parts: [type('A'), type('B')] }, type('C')] }, 'A;B,C'],
    [
      '(A,B);C',
      { kind: 'and', parts: [{ kind: 'or', parts: [type('A'), type('B')] }, type('C')] },
      '(A,B);C',
    ],
    [
      'A ; B | C',
      { kind: 'or', parts: [{ kind: 'and', parts: [type('A'), type('B')] }, type('C')] },
      'A;B,C',
    ],
  ])('%s', (text, selection, printed) => {
    expect(parseTypeSelection(text, expand)).toEqual(selection)
    expect(printTypeSelection(selection, compact)).toBe(printed)
    expect(parseTypeSelection(printed, expand)).toEqual(selection)
  })

  it.each(['', ',', 'A,', '(A', 'A)', 'A B', ';A', '()', 'A,*', '*A,', '|'])('rejects %j', (text) => {
    expect(() => parseTypeSelection(text, expand)).toThrow(/^type: /)
  })

  it('is bounded', () => {
    expect(() => parseTypeSelection(`${'('.repeat(40)}A${')'.repeat(40)}`, expand)).toThrow(/parentheses/)
    expect(() => parseTypeSelection(Array.from({ length: 200 }, () => 'A').join(), expand)).toThrow(
      /too many/,
    )
  })

  it.each<[string, string | string[], boolean]>([
    ['A', 'A', true],
    ['A', 'B', false],
    ['A', ['B', 'A'], true],
    ['A;B', ['B', 'A'], true],
    ['A;B', 'A', false],
    ['A,B', 'B', true],
    ['(A;B),C', ['C'], true],
    ['(A,B);C', ['A', 'B'], false],
    ['*', 'X', true],
  ])('%s of %j: %j', (text, types, expected) => {
    expect(matchesType(parseTypeSelection(text, expand), types)).toBe(expected)
  })

  it('lists its types without repetition', () => {
    expect(typeNamesOf(parseTypeSelection('A;(B,A),C', expand))).toEqual(['A', 'B', 'C'])
    expect(typeNamesOf({ kind: 'any' })).toEqual([])
  })
})

describe('an entity selector', () => {
  const parse = (json: unknown) => parseEntitySelector(json as never, expand, 'entities[0]')

  it('selects by type, ids and pattern', () => {
    const byId = parse({ type: 'A', id: 'urn:e:1', idPattern: 'never' })
    expect(byId).toEqual({ types: type('A'), ids: ['urn:e:1'], idPattern: 'never' })
    expect(matchesEntity(byId, 'urn:e:1', 'A')).toBe(true)
    expect(matchesEntity(byId, 'urn:e:2', 'A')).toBe(false)
    expect(matchesEntity(byId, 'urn:e:1', 'B')).toBe(false)
    const byPattern = parse({ type: 's:A', idPattern: '.*47$' })
    expect(matchesEntity(byPattern, 'urn:e:147', ['https://s.org/A'])).toBe(true)
    expect(matchesEntity(byPattern, 'urn:e:148', ['https://s.org/A'])).toBe(false)
    expect(matchesEntity({}, 'urn:any', 'A')).toBe(true)
  })

  it('is rendered as it was written', () => {
    for (const json of [
      { id: 'urn:e:1', type: 's:A' },
      { id: ['urn:e:1', 'urn:e:2'], type: 'A' },
      { idPattern: 'x', type: '*' },
    ]) {
      expect(renderEntitySelector(parse(json), compact)).toEqual(json)
    }
    expect(renderEntitySelector({}, compact)).toEqual({ type: '*' })
  })

  it.each<[unknown, RegExp]>([
    ['A', /^entities\[0\]: must be an object/],
    [{}, /^entities\[0\]\.type: /],
    [{ type: 7 }, /^entities\[0\]\.type: /],
    [{ type: 'A', id: 'no uri' }, /^entities\[0\]\.id: /],
    [{ type: 'A', id: [] }, /^entities\[0\]\.id: /],
    [{ type: 'A', idPattern: 7 }, /^entities\[0\]\.idPattern: /],
    [{ type: 'A', idPattern: '(' }, /^entities\[0\]\.idPattern: /],
    [{ type: 'A', ids: [] }, /^entities\[0\]\.ids: is not a member/],
  ])('rejects %j', (json, reason) => {
    expect(() => parse(json)).toThrow(reason)
  })
})
