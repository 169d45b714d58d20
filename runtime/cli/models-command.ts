/**
 * `selvedge models ACTION`: lists, adds, measures and removes the models of a running gateway. Folders are
 * checked and measured without a gateway, by the same process that runs models.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { findGateway, type RunningGateway, refusalOf } from '#cli/gateway/running-gateway.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import { actionOf, type GivenOptions, table } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { createInferenceLink } from '#inference/child/inference-link.ts'
import type { ModelTimes } from '#inference/child/inference-protocol.ts'
import { modelFiles } from '#inference/folders/folder-scan.ts'
import { readModelDocument } from '#inference/folders/model-folder.ts'
import { writeTar } from '#inference/folders/tar-archive.ts'
import type { ModelView } from '#inference/models.ts'

const actions = ['ls', 'add', 'test', 'bench', 'rm'] as const
const path = '/selvedge/v1/models'

export async function models(given: GivenOptions, terminal: Terminal): Promise<number> {
  const [word = 'ls', name] = given.words
  const action = actionOf(word, actions)
  if (action === 'ls' && name !== undefined) throw new GatewayError('cli.usage', 'ls takes no name')
  if (action !== 'ls' && name === undefined)
    throw new GatewayError(
      'cli.usage',
      `${action} needs ${action === 'rm' ? 'the name' : 'the folder'} of a model`,
    )
  const show = <T>(result: T, text: (result: T) => string): number => {
    terminal.out(given.has('json') ? `${JSON.stringify(result, undefined, 2)}\n` : text(result))
    return exitCodes.ok
  }
  if (action === 'test' || (action === 'bench' && isFolder(name!)))
    return show(await checkFolder(resolve(name!), action === 'bench'), checkText)
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const gateway = await findGateway(given, loaded.settings)
  if (action === 'ls') return show(await listOf(gateway), listText)
  if (action === 'add')
    return show(await add(gateway, resolve(name!)), (one) => `${one.name} ${one.version} added\n`)
  if (action === 'bench') return show(await measured(gateway, name!), (times) => table(timeRows(times)))
  const answer = await gateway.request(`${path}/${encodeURIComponent(name!)}`, { method: 'DELETE' })
  if (answer.status !== 204) throw refusalOf(answer, `removing ${name}`)
  return show({ removed: name }, () => `${name} removed\n`)
}

const isFolder = (name: string): boolean => name.includes('/') || existsSync(name)

interface ListView {
  readonly process: { readonly running: boolean; readonly residentBytes: number }
  readonly models: readonly ModelView[]
}

async function listOf(gateway: RunningGateway): Promise<ListView> {
  const answer = await gateway.request(path)
  if (answer.status !== 200) throw refusalOf(answer, 'listing the models')
  return JSON.parse(answer.text) as ListView
}

function listText({ process, models: all }: ListView): string {
  const mib = (process.residentBytes / 2 ** 20).toFixed(0)
  const line = process.running ? `The process of the models uses ${mib} MiB.\n` : 'No model runs.\n'
  if (all.length === 0) return 'There are no models.\n'
  const rows = all.map(({ name, version = '', kind = '', source, state, assign, reason }) => {
    const streams = assign
      .map((one) =>
        Object.entries(one)
          .map((pair) => pair.join(' '))
          .join(),
      )
      .join('; ')
    const facts = [version, kind, source, state, streams === '' ? 'not assigned' : `for ${streams}`]
    return [
      name,
      [...facts.filter((fact) => fact !== ''), ...(reason === undefined ? [] : [reason])].join(', '),
    ]
  })
  return `${table(rows)}${line}`
}

async function add(gateway: RunningGateway, folder: string): Promise<ModelView> {
  const files = new Map(modelFiles.map((file) => [file, contentOf(join(folder, file))]))
  const contentType = 'application/x-tar'
  const answer = await gateway.request(path, { method: 'POST', body: writeTar(files), contentType })
  if (answer.status !== 201) throw refusalOf(answer, `adding ${folder}`)
  return JSON.parse(answer.text) as ModelView
}

function contentOf(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new GatewayError('cli.usage', (error as Error).message, {}, error)
  }
}

async function measured(gateway: RunningGateway, name: string): Promise<ModelTimes> {
  const answer = await gateway.request(`${path}/${encodeURIComponent(name)}/measure`, { method: 'POST' })
  if (answer.status !== 200) throw refusalOf(answer, `measuring ${name}`)
  return JSON.parse(answer.text) as ModelTimes
}

interface CheckedFolder {
  readonly name: string
  readonly version: string
  readonly kind: string
  readonly times?: ModelTimes
  readonly residentBytes: number
}

/** @throws model.invalid, inference.no-runtime, inference.ended */
async function checkFolder(folder: string, isMeasured: boolean): Promise<CheckedFolder> {
  const document = await readModelDocument(folder)
  const log = createLog({ level: 'error', clock: systemClock, write: () => undefined })
  const link = createInferenceLink({ clock: systemClock, log, metrics: createMetrics() })
  try {
    const { name, version, kind } = document
    await link.request({ kind: 'load', key: name, folder, document }, 'loaded', limits.inferenceLoadMs.value)
    const measured = isMeasured
      ? await link.request({ kind: 'measure', key: name }, 'measured', limits.inferenceLoadMs.value)
      : undefined
    return {
      name,
      version,
      kind,
      ...(measured !== undefined && { times: measured.times }),
      residentBytes: link.status().resident,
    }
  } finally {
    await link.stop()
  }
}

function checkText({ name, version, kind, times, residentBytes }: CheckedFolder): string {
  const rows = [
    ['Model', `${name} ${version}, kind ${kind}`],
    ['Checks', 'hash, operators, size, shapes and golden vectors are correct'],
    ['Process', `${(residentBytes / 2 ** 20).toFixed(0)} MiB resident with this model`],
  ]
  return table(times === undefined ? rows : [...rows, ...timeRows(times)])
}

const timeRows = ({ p50, p99, batchedRow, batchRows }: ModelTimes): string[][] => [
  ['One row', `p50 ${p50.toFixed(1)} us, p99 ${p99.toFixed(1)} us per call`],
  ['Batched', `${batchedRow.toFixed(2)} us per row in calls of ${batchRows} rows`],
]
