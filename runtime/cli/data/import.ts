/**
 * `selvedge import`: sends the entities of a file to a running gateway in batches, and lists the rejected
 * ones. The file is read incrementally. The exit code is 0 if all entities were accepted, otherwise 1.
 */
import { createReadStream } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { GatewayError } from '#base/register/errors.ts'
import { findGateway, type RunningGateway, refusalOf } from '#cli/gateway/running-gateway.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import type { GivenOptions } from '#cli/terminal/arguments.ts'
import { createCsvReader } from '#cli/terminal/csv.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { createRowReader, type RowReader, unknownColumns } from './entity-csv.ts'
import { createProgress, formatOf, type TransferFormat, writeResult } from './transfer.ts'

/** Maximum entities and characters of a batch. */
const batchOf = 500
const batchCharactersMax = 2_000_000
/** Maximum number of rejections that are listed. */
const rejectionsListedMax = 20

const targets = {
  replace: '/ngsi-ld/v1/entityOperations/upsert?options=replace',
  update: '/ngsi-ld/v1/entityOperations/upsert?options=update',
  create: '/ngsi-ld/v1/entityOperations/create',
} as const

interface Refusal {
  readonly entityId: string
  readonly error: { readonly detail?: string; readonly title?: string }
}

export async function importEntities(given: GivenOptions, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const mode = given.text('mode') ?? 'replace'
  const target = Object.hasOwn(targets, mode) ? targets[mode as keyof typeof targets] : undefined
  if (target === undefined)
    throw new GatewayError(
      'cli.usage',
      `--mode expects one of ${Object.keys(targets).join(', ')}, got ${mode}`,
    )
  const file = given.text('file')
  const format = formatOf(given, file)
  const gateway = await findGateway(given, loaded.settings)
  const progress = createProgress(terminal, 'entities')
  let taken = 0
  let refused = 0
  const isHistory = given.has('history')
  if (isHistory && given.has('mode'))
    throw new GatewayError(
      'cli.usage',
      '--mode and --history exclude each other, because histories are always added',
    )
  const entities = entitiesOf(piecesOf(file, terminal), format, isHistory)
  for await (const batch of batches(entities, isHistory ? 1 : batchOf)) {
    const refusals = isHistory ? await sendHistory(gateway, batch[0]!) : await send(gateway, target, batch)
    for (const { entityId, error } of refusals.slice(0, Math.max(0, rejectionsListedMax - refused)))
      terminal.err(`${entityId}: ${error.detail ?? error.title ?? 'refused'}\n`)
    refused += refusals.length
    taken += batch.length - refusals.length
    progress.at(taken + refused)
  }
  const what = isHistory ? 'parts of histories' : 'entities'
  const words = `${taken.toLocaleString('en-US')} ${what} imported${refused === 0 ? '' : `, ${refused.toLocaleString('en-US')} refused`}`
  return writeResult(given, terminal.out, { words, facts: { imported: taken, refused }, failed: refused > 0 })
}

async function send(
  gateway: RunningGateway,
  path: string,
  batch: readonly string[],
): Promise<readonly Refusal[]> {
  const answer = await gateway.request(path, {
    method: 'POST',
    body: `[${batch.join()}]`,
    contentType: 'application/ld+json',
  })
  if (answer.status === 201 || answer.status === 204) return []
  if (answer.status !== 207) throw refusalOf(answer, 'a batch')
  return (JSON.parse(answer.text) as { errors: readonly Refusal[] }).errors
}

/** Adds history to that of the entity, which is created if it does not exist. */
async function sendHistory(gateway: RunningGateway, text: string): Promise<readonly Refusal[]> {
  const answer = await gateway.request('/ngsi-ld/v1/temporal/entities?options=sysAttrs', {
    method: 'POST',
    body: text,
    contentType: 'application/ld+json',
  })
  if (answer.status === 201 || answer.status === 204) return []
  if (answer.status !== 400) throw refusalOf(answer, 'a history')
  const { id } = JSON.parse(text) as { id: string }
  return [{ entityId: id, error: JSON.parse(answer.text) as Refusal['error'] }]
}

/** Groups the texts of entities into batches of bounded size. */
async function* batches(
  entities: AsyncIterable<JsonObject>,
  most: number,
): AsyncGenerator<readonly string[]> {
  let batch: string[] = []
  let characters = 0
  for await (const entity of entities) {
    const text = JSON.stringify(Object.hasOwn(entity, '@context') ? entity : { ...entity, '@context': core })
    if (batch.length > 0 && (batch.length === most || characters + text.length > batchCharactersMax)) {
      yield batch
      batch = []
      characters = 0
    }
    batch.push(text)
    characters += text.length
  }
  if (batch.length > 0) yield batch
}

/** Entities without an @context use the core context. */
const core = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld'

async function* piecesOf(file: string | undefined, { input }: Terminal): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  const source = file === undefined ? input : createReadStream(file)
  try {
    for await (const piece of source) yield decoder.write(piece as Buffer)
  } catch (error) {
    if (file === undefined) throw error
    throw new GatewayError('cli.usage', `--file: ${(error as Error).message}`, {}, error)
  }
  yield decoder.end()
}

async function* entitiesOf(
  pieces: AsyncIterable<string>,
  format: TransferFormat,
  isHistory: boolean,
): AsyncGenerator<JsonObject> {
  yield* format === 'csv' ? fromCsv(pieces, isHistory ? historyRowsMax : Infinity) : fromLines(pieces)
}

async function* fromLines(pieces: AsyncIterable<string>): AsyncGenerator<JsonObject> {
  let rest = ''
  let number = 0
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield* entityOf(line, ++number)
  }
  yield* entityOf(rest, number + 1)
}

function entityOf(line: string, number: number): readonly JsonObject[] {
  if (line.trim() === '') return []
  let entity: unknown
  try {
    entity = JSON.parse(line)
  } catch (error) {
    throw new GatewayError('cli.usage', `line ${number} is not JSON: ${(error as Error).message}`)
  }
  if (!isObject(entity)) throw new GatewayError('cli.usage', `line ${number} is not an entity`)
  return [entity]
}

/** Maximum history rows of an entity in one request. */
const historyRowsMax = 5000

async function* fromCsv(pieces: AsyncIterable<string>, rowsMax: number): AsyncGenerator<JsonObject> {
  const csv = createCsvReader()
  let reader: RowReader | undefined
  let rowCount = 0
  const read = (rows: readonly (readonly string[])[]): JsonObject[] => {
    const entities: JsonObject[] = []
    for (const row of rows) {
      if (reader === undefined) reader = readerOf(row)
      else entities.push(...reader.read(row))
      if (++rowCount % rowsMax === 0) entities.push(...reader.end())
    }
    return entities
  }
  for await (const piece of pieces) yield* read(csv.read(piece))
  yield* read(csv.end())
  yield* reader?.end() ?? []
}

function readerOf(header: readonly string[]): RowReader {
  const unknown = unknownColumns(header)
  if (unknown.length > 0)
    throw new GatewayError('cli.usage', `the file has unknown columns: ${unknown.join(', ')}`)
  if (!header.some((name) => name.trim() === 'id'))
    throw new GatewayError('cli.usage', 'the file needs a column id')
  return createRowReader(header)
}
