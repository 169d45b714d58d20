/**
 * A child process that runs another `selvedge` command and whose output is read line by line. Children end
 * with their
 * parent: by SIGTERM, or by SIGKILL if that takes too long or the parent ends unexpectedly. They receive
 * settings as arguments only, since settings in the environment of this process may be for other gateways.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { ambiguousVariables } from '#config/checks/foreign-names.ts'

export interface Child {
  /** Resolves to the exit code, or the name of the signal. */
  readonly ended: Promise<number | string>
  readonly process: ChildProcess
}

/**
 * Starts `selvedge ...args` with the Node and the entry file of this process; `onLine` receives both outputs.
 */
export function startChild(args: readonly string[], onLine: (line: string) => void): Child {
  const child = spawn(process.execPath, [process.argv[1]!, ...args], {
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !isSetting(name))),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', onLine)
  const end = (): void => void child.kill('SIGKILL')
  process.once('exit', end)
  const ended = new Promise<number | string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(code ?? signal ?? 0))
  })
  void ended.then(() => process.off('exit', end))
  return { ended, process: child }
}

function isSetting(name: string): boolean {
  return name.startsWith('SELVEDGE_') || Object.hasOwn(ambiguousVariables, name)
}

/** Stops the children one after the other, in the given order. */
export async function endChildren(children: readonly Child[], withinMs: number): Promise<void> {
  for (const { ended, process: child } of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGTERM')
    const waiting = new AbortController()
    const late = pause(withinMs, true, { signal: waiting.signal }).catch(() => false)
    if ((await Promise.race([ended.then(() => false), late])) === true) child.kill('SIGKILL')
    waiting.abort()
    await ended
  }
}
