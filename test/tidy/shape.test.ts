/** Source files keep their shape, and each check that says so can fail. */
import { describe, expect, it } from 'vitest'
import { bannedNames, longFiles, longFunctions, missingOpenings, unfoundTests } from './shape.ts'
import { file, isTypeScript, wholeTree } from './tree.ts'

const tree = wholeTree()

describe('source files', () => {
  it('are all seen', () => expect(tree.filter(isTypeScript).length).toBeGreaterThan(100))
  it('begin with what they are', () => expect(missingOpenings(tree)).toEqual([]))
  it('have names that are nouns', () => expect(bannedNames(tree)).toEqual([]))
  it('are tests only where a project runs them', () => expect(unfoundTests(tree)).toEqual([]))
  it('have at most 400 lines', () => expect(longFiles(tree)).toEqual([]))
  it('have functions of at most 100 lines', () => expect(longFunctions(tree)).toEqual([]))
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

  it('see long files and long functions, and measure a maker without what it makes', () => {
    const body = 'work()\n'.repeat(99)
    const long = `export function long() {\n${body}}\n`
    expect(longFunctions([file('runtime/a.ts', long)])).toEqual([
      'runtime/a.ts: long has 101 lines, at most 100',
    ])
    expect(longFunctions([file('runtime/a.ts', `const long = () => {\n${body}}\n`)])).toHaveLength(1)
    const inner = `const inner = () => {\n${'work()\n'.repeat(60)}}\n`
    expect(
      longFunctions([file('runtime/a.ts', `export function createPart() {\n${inner}${inner}}\n`)]),
    ).toEqual([])
    expect(longFunctions([file('runtime/a.ts', `export function createPart() {\n${body}}\n`)])).toHaveLength(
      1,
    )
    const longFile = (lines: number) => [file('runtime/a.ts', 'x\n'.repeat(lines))]
    expect(longFiles(longFile(401))).toHaveLength(1)
    expect(longFiles(longFile(450), { 'runtime/a.ts': 450 })).toEqual([])
    expect(longFiles(longFile(451), { 'runtime/a.ts': 450 })).toHaveLength(1)
    expect(longFiles(longFile(400), { 'runtime/a.ts': 450 })).toEqual([
      'runtime/a.ts fits: take it off the list of long files',
    ])
  })
})
