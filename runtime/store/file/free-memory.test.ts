/** What is given back is the process's own, so it is looked at in one that does nothing else. */
import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'

const script = `
  import BetterSqlite3 from 'better-sqlite3'
  import { releaseMemory } from '#store/file/free-memory.ts'
  const megabytes = () => process.memoryUsage.rss() / 2 ** 20
  const database = new BetterSqlite3(':memory:')
  let pieces = Array.from({ length: 40_000 }, () => Buffer.allocUnsafeSlow(3000).fill(1))
  const kept = pieces.filter((_, i) => i % 40 === 0)
  pieces = []
  gc()
  const before = megabytes()
  releaseMemory([database], 'caches')
  const after = megabytes()
  releaseMemory([], 'free')
  const is = database.prepare('SELECT 1').pluck().get()
  console.log(JSON.stringify({ before, after, is, whole: kept.every((piece) => piece[2999] === 1) }))
`

it('gives back what lies free between pieces in use, and leaves those and the connections whole', () => {
  const output = execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  const { before, after, is, whole } = JSON.parse(output) as Record<'before' | 'after' | 'is', number> & {
    whole: boolean
  }
  expect(before - after).toBeGreaterThan(60)
  expect({ is, whole }).toEqual({ is: 1, whole: true })
})
