/** Source files keep their shape, and each check that says so can fail. */
import { describe, expect, it } from 'vitest'
import { bannedNames, longFiles, missingOpenings, unfoundTests } from './shape.ts'
import { file, isTypeScript, wholeTree } from './tree.ts'

const tree = wholeTree()

describe('source files', () => {
  it('are all seen', () => expect(tree.filter(isTypeScript).length).toBeGreaterThan(100))
  it('begin with what they are', () => expect(missingOpenings(tree)).toEqual([]))
  it('have names that are nouns', () => expect(bannedNames(tree)).toEqual([]))
  it('are tests only where a project runs them', () => expect(unfoundTests(tree)).toEqual([]))
  it('have at most 500 lines', () => expect(longFiles(tree)).toEqual([]))
})

describe('the checks', () => {
  it('see a missing opening', () => {
    const good = [file('runtime/a.ts', '/** What it is. */\n'), file('bin/a', '#!/bin/sh\n# What it is.\n')]
    const bad = [file('runtime/a.ts', 'export const a = 1\n'), file('bin/a', '#!/bin/sh\nexit\n')]
    expect(missingOpenings(good)).toEqual([])
    expect(missingOpenings(bad)).toHaveLength(2)
  })

  it('see a banned word and a name in camel case', () => {
    const names = ['string-utils.ts', 'session-manager.ts', 'requestHandler.ts', 'manager.test.ts'].map(
      (name) => file(`runtime/base/${name}`, ''),
    )
    expect(bannedNames(names)).toHaveLength(4)
    expect(
      bannedNames([file('runtime/base/bounded-queue.test.ts', ''), file('vitest.config.ts', '')]),
    ).toEqual([])
  })

  it('see a test that nobody runs', () => {
    expect(unfoundTests([file('test/spec/a.spec.ts', ''), file('docs/a.test.ts', '')])).toHaveLength(2)
  })

  it('see a long file, without its comments', () => {
    const longFile = (text: string) => [file('runtime/a.ts', text)]
    expect(longFiles(longFile('x\n'.repeat(501)))).toEqual(['runtime/a.ts has 501 lines, at most 500'])
    expect(longFiles(longFile('x\n// y\n'.repeat(500)))).toEqual([])
  })
})
