/** The registers hold nothing that the product does not use, and the check can fail. */
import { describe, expect, it } from 'vitest'
import { commands } from '#cli/commands.ts'
import { limitsDeclaredTwice, registers, unreadOptions, unusedEntries } from './registers.ts'
import { file, wholeTree } from './tree.ts'

const tree = wholeTree()

describe.each(Object.entries(registers))('every %s', (_kind, register) => {
  it('is used by the product', () => {
    expect(register.entries.length).toBeGreaterThan(5)
    expect(unusedEntries(tree, register)).toEqual([])
  })
})

it('no limit is declared twice', () => expect(limitsDeclaredTwice(tree)).toEqual([]))

it('every option of a command is read', () => {
  const options = commands.flatMap((command) => command.options)
  expect(options.length).toBeGreaterThan(50)
  expect(unreadOptions(tree, options)).toEqual([])
})

describe('the check', () => {
  const register = { ...registers['limit']!, entries: ['pageMax', 'pageDefault'] }

  it('sees an entry nobody uses, even when a longer name is used', () => {
    const files = [file('runtime/http/a.ts', 'limits.pageMax.value + limits.pageDefaults.value')]
    expect(unusedEntries(files, register)).toEqual(['pageDefault'])
  })

  it('sees a limit that two files declare', () => {
    const files = ['a', 'b'].map((name) =>
      file(`runtime/base/limits/${name}.ts`, `  pageMax: limit(1, 'ms'),\n  ${name}: limit(2, 'ms'),\n`),
    )
    expect(limitsDeclaredTwice(files)).toEqual(['pageMax'])
  })

  it('sees an option that is only declared', () => {
    const files = [file('runtime/cli/a.ts', "{ name: 'all' }, { name: 'json' }, given.has('json')")]
    const options = ['all', 'json'].map((name) => ({ name, summary: '' }))
    expect(unreadOptions(files, options)).toEqual(['all'])
  })

  it('does not count tests as use', () => {
    const files = [file('runtime/http/a.test.ts', 'limits.pageMax.value + limits.pageDefault.value')]
    expect(unusedEntries(files, register)).toEqual(['pageMax', 'pageDefault'])
  })
})
