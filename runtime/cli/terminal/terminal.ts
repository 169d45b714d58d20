/**
 * What a command sees of the world around the process: two outputs, one input, the environment. Everything written
 * through it is on its way when the call returns, so a command may end the process after it.
 */
import type { Environment } from '#config/checks/environment.ts'

export interface Terminal {
  /** Standard output: results, and the log lines of `run`. */
  readonly out: (text: string) => void
  /** Standard error: what a person has to know beside the result. */
  readonly err: (text: string) => void
  readonly input: NodeJS.ReadableStream
  readonly env: Environment
  /** Characters a line may have, where standard output is a screen. */
  readonly columns: number | undefined
}

/** Exit codes, as sysexits.h has them. */
export const exitCodes = { ok: 0, failure: 1, usage: 64, internal: 70, settings: 78 } as const

/** The terminal of this process. A reader that goes away does not end it. */
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
