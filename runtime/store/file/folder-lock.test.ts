/** One gateway per data folder, and no lock that outlives its process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest'
import { isGatewayError } from '#base/register/errors.ts'
import { lockFolder } from './folder-lock.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function tryLock(): string {
  try {
    lockFolder(folder)()
    return 'locked and released'
  } catch (error) {
    if (isGatewayError(error)) return error.code
    throw error
  }
}

it('is held once, until it is released', () => {
  const release = lockFolder(folder)
  expect(tryLock()).toBe('store.locked')
  release()
  expect(tryLock()).toBe('locked and released')
})

it('is held against other processes, and released when its own is killed', async () => {
  const program = `
    const { lockFolder } = await import(${JSON.stringify(new URL('./folder-lock.ts', import.meta.url).href)})
    lockFolder(${JSON.stringify(folder)})
    // This also holds when nothing references the release function.
    for (let round = 0; round < 3; round++) {
      gc()
      await new Promise((resolve) => setTimeout(resolve))
    }
    console.log('locked')
    setInterval(() => {}, 1000)`
  const holder = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  expect(tryLock()).toBe('store.locked')
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  expect(tryLock()).toBe('locked and released')
})

it('creates the folder, accessible to its owner only', () => {
  const inner = join(folder, 'a', 'b')
  lockFolder(inner)()
  expect(statSync(inner).mode & 0o777).toBe(0o700)
})

it('states the reason when a folder cannot be used', () => {
  writeFileSync(join(folder, 'lock'), 'something else entirely '.repeat(100))
  expect(tryLock()).toBe('store.failed')
  folder = join(folder, 'lock')
  expect(tryLock()).toBe('store.failed')
  folder = join(folder, '..')
})
