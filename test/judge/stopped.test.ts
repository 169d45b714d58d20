/** A stopped judge leaves nothing behind: no gateway, no mounted disk, no folder. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-stopped-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Processes whose environment names a path below the folder, except the judge itself. */
function processes(except: number | undefined): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === except) return false
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(folder)
    } catch {
      return false
    }
  })
}

it.each(['SIGTERM', 'SIGINT'] as const)(
  'ends its gateways and unmounts its disk at %s',
  async (signal) => {
    const judge = spawn(process.execPath, ['scripts/judge.ts', '--seconds', '600', '--rate', '50'], {
      env: { ...process.env, TMPDIR: folder },
      stdio: 'ignore',
    })
    const ended = new Promise((resolve) => judge.once('close', resolve))
    await vi.waitFor(() => expect(processes(judge.pid).length).toBeGreaterThan(1))
    judge.kill(signal)
    expect(await ended).toBe(signal === 'SIGTERM' ? 143 : 130)
    // A gateway that was just starting is killed when the judge exits, and takes a moment to end.
    await vi.waitFor(() => expect(processes(judge.pid)).toEqual([]))
    expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(folder)
    expect(readdirSync(folder).filter((name) => name.startsWith('selvedge-'))).toEqual([])
  },
  120_000,
)
