/** Memory is released by a separate process that does nothing else, so that its size can be measured. */
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

it('releases free memory between blocks in use, and leaves these and the connections intact', () => {
  const output = execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  const { before, after, is, whole } = JSON.parse(output) as Record<'before' | 'after' | 'is', number> & {
    whole: boolean
  }
  expect(before - after).toBeGreaterThan(60)
  expect({ is, whole }).toEqual({ is: 1, whole: true })
})
