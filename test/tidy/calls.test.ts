/** Calls go to their right place, and each check that says so can fail. */
import { describe, expect, it } from 'vitest'
import { bannedCalls, openEnds, switchedOffTests } from './calls.ts'
import { file, wholeTree } from './tree.ts'

const tree = wholeTree()

describe('the code', () => {
  it('makes no banned call', () => expect(bannedCalls(tree)).toEqual([]))
  it('runs every test it has', () => expect(switchedOffTests(tree)).toEqual([]))
  it('leaves no open ends', () => expect(openEnds(tree)).toEqual([]))
})

describe('the checks', () => {
  it.each([
    ["throw new Error('no')", 'new Error'],
    ["throw new TypeError('no')", 'new Error'],
    ['const at = Date.now()', 'Date.now'],
    ['const dice = Math.random()', 'Math.random'],
    ["await fetch('http://a')", 'fetch'],
    ["console.log('hello')", 'console'],
    ["database.prepare('SELECT 1')", '.prepare'],
  ])('see %s', (text, what) => {
    const complaints = bannedCalls([file('runtime/broker/a.ts', `\n${text}`)])
    expect(complaints).toHaveLength(1)
    expect(complaints[0]).toContain(`runtime/broker/a.ts:2 ${what}: use `)
  })

  it('leave calls alone that are at home, in tests, or only spoken of', () => {
    const fine = [
      file('runtime/base/time/clock.ts', 'Date.now()'),
      file('runtime/store/writer/write-statements.ts', "database.prepare('SELECT 1')"),
      file('runtime/broker/a.test.ts', "throw new Error('no')"),
      file('runtime/broker/b.ts', '// new Error is banned\nports.fetch()'),
      file(
        'runtime/http/listener/listener-access.ts',
        'const guard = (fetch) => (request) => fetch(request)',
      ),
      file('runtime/delivery/delivery-lanes.ts', 'createPace(clock, Math.random)'),
    ]
    expect(bannedCalls(fine)).toEqual([])
  })

  it('see tests singled out, switched off or announced', () => {
    const lines = ['only', 'skip', 'todo', 'fails', 'skipIf'].map((word) => `it.${word}('a', () => {})`)
    expect(switchedOffTests([file('test/spec/a.test.ts', lines.join('\n'))])).toHaveLength(5)
    expect(switchedOffTests([file('test/spec/a.test.ts', "it.each([1])('a', () => {})")])).toEqual([])
  })

  it('see an open end', () => {
    expect(openEnds([file('runtime/a.ts', `// ${'TO'}${'DO'}: later`)])).toHaveLength(1)
  })
})
