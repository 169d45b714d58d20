/**
 * Shared parts of export and import: the file format, and progress lines.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { GivenOptions } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'

export type TransferFormat = 'jsonld' | 'csv'

/** The format of --format, or by the extension of the file. @throws cli.usage */
export function formatOf(given: GivenOptions, file: string | undefined): TransferFormat {
  const format = given.text('format') ?? (file?.toLowerCase().endsWith('.csv') === true ? 'csv' : 'jsonld')
  if (format !== 'jsonld' && format !== 'csv')
    throw new GatewayError('cli.usage', `--format expects jsonld or csv, got ${format}`)
  return format
}

export function createProgress(terminal: Terminal, what: string) {
  const start = performance.now()
  let printedAt = start
  return Object.freeze({
    /** Prints the progress at most once a second. */
    at(done: number, of?: number): void {
      const now = performance.now()
      if (now - printedAt < 1000) return
      printedAt = now
      const total = of === undefined ? '' : ` of ${of.toLocaleString('en-US')}`
      const rate = Math.round(done / ((now - start) / 1000)).toLocaleString('en-US')
      terminal.err(`${done.toLocaleString('en-US')}${total} ${what}, ${rate} per second\n`)
    },
  })
}

/** Writes the result as text or as JSON, and returns the exit code. */
export function writeResult(
  given: GivenOptions,
  write: (text: string) => void,
  { words, facts, failed }: { readonly words: string; readonly facts: object; readonly failed: boolean },
): number {
  write(given.has('json') ? `${JSON.stringify(facts)}\n` : `${words}\n`)
  return failed ? exitCodes.failure : exitCodes.ok
}
