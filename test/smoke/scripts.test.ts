/** The scripts of `npm run` say what they take, and what is wrong with what they were given, in words. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

interface Said {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const root = join(import.meta.dirname, '../..')

const said = (...words: string[]): Promise<Said> =>
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
    const { code, stdout, stderr } = await said(script, ...words, '--help')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^usage: npm run /i)
  })

  it('refuses what it does not know', async () => {
    const { code, stdout, stderr } = await said(script, ...words, '--nonsense')
    expect([code, stdout]).toEqual([64, ''])
    expect(stderr).toMatch(/Unknown option '--nonsense'/)
    expect(stderr).not.toContain('    at ')
  })
})
