/**
 * What export and import have in common: the form of the file, and telling how far they are.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { Given } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'

export type TransferFormat = 'jsonld' | 'csv'

/** The form that is asked for, or that the name of the file tells. @throws cli.usage */
export function formatOf(given: Given, file: string | undefined): TransferFormat {
  const format = given.text('format') ?? (file?.toLowerCase().endsWith('.csv') === true ? 'csv' : 'jsonld')
  if (format !== 'jsonld' && format !== 'csv')
    throw new GatewayError('cli.usage', `--format ${format} is neither jsonld nor csv`)
  return format
}

export interface Progress {
  /** Tells at most once a second how many are done. */
  at(done: number, of?: number): void
}

export function createProgress(terminal: Terminal, what: string): Progress {
  const start = performance.now()
  let told = start
  return Object.freeze({
    at(done, of) {
      const now = performance.now()
      if (now - told < 1000) return
      told = now
      const total = of === undefined ? '' : ` of ${of.toLocaleString('en-US')}`
      const rate = Math.round(done / ((now - start) / 1000)).toLocaleString('en-US')
      terminal.err(`${done.toLocaleString('en-US')}${total} ${what}, ${rate} per second\n`)
    },
  } satisfies Progress)
}

/** Ends with what was done, in words or in JSON. */
export function tellResult(
  given: Given,
  write: (text: string) => void,
  { words, facts, failed }: { readonly words: string; readonly facts: object; readonly failed: boolean },
): number {
  write(given.has('json') ? `${JSON.stringify(facts)}\n` : `${words}\n`)
  return failed ? exitCodes.failure : exitCodes.ok
}
