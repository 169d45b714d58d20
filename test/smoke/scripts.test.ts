/** The scripts of `npm run` have a help text and report unknown options. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

interface Output {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const root = join(import.meta.dirname, '../..')

const run = (...words: string[]): Promise<Output> =>
  new Promise((resolve) => {
    execFile(process.execPath, words, { cwd: root }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    )
  })

describe.each([
  ['scripts/judge.ts', []],
  ['scripts/crash.ts', []],
  ['scripts/offline.ts', []],
  ['scripts/interop.ts', []],
  ['scripts/power-cut.ts', []],
  ['bench/main.ts', ['ingest']],
])('%s', (script, words) => {
  it('has help', async () => {
    const { code, stdout, stderr } = await run(script, ...words, '--help')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^usage: npm run /i)
  })

  it('rejects an unknown option', async () => {
    const { code, stdout, stderr } = await run(script, ...words, '--nonsense')
    expect([code, stdout]).toEqual([64, ''])
    expect(stderr).toMatch(/Unknown option '--nonsense'/)
    expect(stderr).not.toContain('    at ')
  })
})
