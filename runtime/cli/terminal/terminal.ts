/**
 * The environment of a command: two outputs, one input, environment variables. A write is complete when the
 * call returns, so that a command may end the process afterwards.
 */
import type { Environment } from '#config/checks/environment.ts'

export interface Terminal {
  /** Standard output: results, and the log lines of `run`. */
  readonly out: (text: string) => void
  /** Standard error: messages for the operator besides the result. */
  readonly err: (text: string) => void
  readonly input: NodeJS.ReadableStream
  readonly env: Environment
  /** Width of the screen in characters; undefined if standard output is not a screen. */
  readonly columns: number | undefined
}

/** Exit codes as in sysexits.h. */
export const exitCodes = { ok: 0, failure: 1, usage: 64, internal: 70, settings: 78 } as const

/** The terminal of this process. A closed pipe does not end the process. */
export function processTerminal(): Terminal {
  return Object.freeze({
    out: writerTo(process.stdout),
    err: writerTo(process.stderr),
    env: process.env,
    columns: process.stdout.isTTY ? process.stdout.columns : undefined,
    get input() {
      return process.stdin
    },
  })
}

/** Node writes to files, screens and pipes synchronously on Linux. */
function writerTo(stream: NodeJS.WriteStream): (text: string) => void {
  stream.on('error', () => undefined)
  return (text) => void stream.write(text)
}
