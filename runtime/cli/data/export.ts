/**
 * `selvedge export`: writes the entities of a running gateway as lines of JSON-LD or as CSV. It follows the
 * next links, which contain a position, so that each entity that exists throughout is exported once despite
 * concurrent writes.
 */
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { GatewayError } from '#base/register/errors.ts'
import { findGateway, type RunningGateway, refusalOf } from '#cli/gateway/running-gateway.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import type { GivenOptions } from '#cli/terminal/arguments.ts'
import { csvRow } from '#cli/terminal/csv.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { entityColumns, toRows } from './entity-csv.ts'
import { evolutionOf } from './export-history.ts'
import { createProgress, formatOf, writeResult } from './transfer.ts'

const pageOf = 500

export async function exportEntities(given: GivenOptions, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const file = given.text('out')
  const format = formatOf(given, file)
  const gateway = await findGateway(given, loaded.settings)
  const output = file === undefined ? { write: terminal.out, close: () => undefined } : openFile(file)
  const progress = createProgress(terminal, 'entities')
  let done = 0
  let hint: string | undefined
  try {
    if (format === 'csv') output.write(csvRow(entityColumns))
    const textOf = (entity: JsonObject): string =>
      format === 'csv' ? toRows(entity).map(csvRow).join('') : `${JSON.stringify(entity)}\n`
    for await (const { entities, count, warning } of pages(gateway, given)) {
      hint ??= warning
      if (!given.has('history')) output.write(entities.map(textOf).join(''))
      for (const { id } of given.has('history') ? entities : []) {
        for await (const part of evolutionOf(gateway, id as string)) output.write(textOf(part))
        progress.at(++done, count)
      }
      if (given.has('history')) continue
      done += entities.length
      progress.at(done, count)
    }
  } finally {
    output.close(done > 0)
  }
  const what = given.has('history') ? 'histories of entities' : 'entities'
  const why = done === 0 ? (hint ?? emptyReason(given)) : undefined
  const words = `${done.toLocaleString('en-US')} ${what} exported${why === undefined ? '' : `: ${why}`}`
  const write = file === undefined ? terminal.err : terminal.out
  return writeResult(given, write, { words, facts: { entities: done }, failed: false })
}

function emptyReason(given: GivenOptions): string {
  const conditions = ['type', 'q']
    .filter((name) => given.has(name))
    .map((name) => `--${name} ${given.text(name)}`)
  const tenant = given.text('tenant')
  const where = `in ${tenant === undefined ? 'the default tenant' : `tenant ${tenant}`}`
  if (conditions.length === 0) return `this gateway has no entities ${where}`
  return `no entity ${where} matches ${conditions.join(' and ')}`
}

interface ExportPage {
  readonly entities: readonly JsonObject[]
  readonly count: number
  /** A hint of the gateway if it found nothing. */
  readonly warning: string | undefined
}

async function* pages(gateway: RunningGateway, given: GivenOptions): AsyncGenerator<ExportPage> {
  const [type, q] = [given.text('type'), given.text('q')]
  const parameters = new URLSearchParams({
    // Entities of other brokers are exported there.
    local: 'true',
    ...(type === undefined ? {} : { type }),
    ...(q === undefined ? {} : { q }),
    limit: String(pageOf),
    count: 'true',
  })
  let next: string | undefined = `/ngsi-ld/v1/entities?${parameters}`
  while (next !== undefined) {
    const answer = await gateway.request(next, { accept: 'application/ld+json' })
    if (answer.status !== 200) throw refusalOf(answer, 'querying entities')
    yield {
      entities: JSON.parse(answer.text) as JsonObject[],
      count: Number(answer.headers.get('ngsild-results-count')),
      warning: /^199 \S+ "(.*)"$/.exec(answer.headers.get('ngsild-warning') ?? '')?.[1],
    }
    next = /<([^>]*)>;\s*rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
  }
}

/** Creates a file that is flushed when it is closed, and removed if it is not kept. @throws cli.usage */
function openFile(file: string): { write: (text: string) => void; close: (isKept: boolean) => void } {
  let descriptor: number
  try {
    descriptor = openSync(file, 'wx', 0o600)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const words = code === 'EEXIST' ? `${file} already exists and is not overwritten` : message
    throw new GatewayError('cli.usage', `--out: ${words}`, {}, error)
  }
  return {
    write: (text) => void writeSync(descriptor, text),
    close(isKept) {
      fsyncSync(descriptor)
      closeSync(descriptor)
      if (!isKept) rmSync(file)
    },
  }
}
