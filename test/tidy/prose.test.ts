/** Comments are plain, and each check that says so can fail. */
import { describe, expect, it } from 'vitest'
import {
  ambiguousNames,
  ambiguousTypes,
  commentsOf,
  dialectSentences,
  longSentences,
  sentencesOf,
  wideComments,
} from './prose.ts'
import { file, wholeTree } from './tree.ts'

const tree = wholeTree()

describe('comments', () => {
  it('are all seen', () => expect(tree.flatMap(commentsOf).length).toBeGreaterThan(3000))
  it('name the actor and use terms of the field', () => expect(dialectSentences(tree)).toEqual([]))
  it('have sentences of at most 25 words', () => expect(longSentences(tree)).toEqual([]))
  it('have lines of at most 110 columns', () => expect(wideComments(tree)).toEqual([]))
})

describe('names', () => {
  it('of files mean one thing', () => expect(ambiguousNames(tree)).toEqual([]))
  it('of exported types mean one thing', () => expect(ambiguousTypes(tree)).toEqual([]))
})

describe('the checks', () => {
  const path = 'runtime/base/a.ts'

  it('see sentences without an actor, and words that are no terms', () => {
    const text = [
      '/** What waits is sent again. It is told to peers. */',
      "const told = 'What is told' // Who asks is answered.",
      '/** Names are normalised. */',
      '/** Why does it wait? The queue is full: whatever comes is dropped. */',
    ].join('\n')
    expect(dialectSentences([file(path, text)])).toHaveLength(4)
  })

  it('read sentences without examples, sources and lists', () => {
    const comment = '/**\n * One (GS CIM 009, 5.2). `a. b` two;\n * three.\n *\n * - an item\n */'
    expect(sentencesOf(comment)).toEqual(['One .', 'code two;', 'three.'])
  })

  it('see long sentences, wide lines and names used twice', () => {
    expect(longSentences([file(path, `/** ${'word '.repeat(26)}. */`)])).toHaveLength(1)
    expect(longSentences([file(path, `/** ${'word '.repeat(20)}. */`)])).toEqual([])
    expect(wideComments([file(path, `// ${'x'.repeat(110)}`)])).toHaveLength(1)
    expect(wideComments([file(path, `const x = '${'x'.repeat(110)}'`)])).toEqual([])
    expect(ambiguousNames([file('runtime/http/a.ts', ''), file('runtime/mqtt/b/a.ts', '')])).toHaveLength(1)
    const [one, other] = [
      file('runtime/http/a.ts', 'export type A = 1'),
      file('runtime/mqtt/b.ts', 'export interface A {}'),
    ]
    expect(ambiguousTypes([one, other])).toHaveLength(1)
    expect(ambiguousTypes([one])).toEqual([])
    expect(ambiguousNames([file('runtime/host/plugin.ts', ''), file('plugins/x/plugin.ts', '')])).toEqual([])
  })
})
