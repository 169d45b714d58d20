/**
 * `selvedge models ACTION`: checks and measures the folder of an ONNX model as a gateway would, without one.
 */
import { resolve } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { actionOf, type GivenOptions, table } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { createInferenceLink } from '#inference/child/inference-link.ts'
import type { ModelTimes } from '#inference/child/inference-protocol.ts'
import { readModelDocument } from '#inference/folders/model-folder.ts'

const actions = ['test', 'bench'] as const

export async function models(given: GivenOptions, terminal: Terminal): Promise<number> {
  const [word = '', folder] = given.words
  const action = actionOf(word, actions)
  if (folder === undefined) throw new GatewayError('cli.usage', `${action} needs the folder of a model`)
  const checked = await checkFolder(resolve(folder), action === 'bench')
  terminal.out(given.has('json') ? `${JSON.stringify(checked, undefined, 2)}\n` : checkText(checked))
  return exitCodes.ok
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
  if (times !== undefined)
    rows.push(
      ['One row', `p50 ${times.p50.toFixed(1)} us, p99 ${times.p99.toFixed(1)} us per call`],
      ['Batched', `${times.batchedRow.toFixed(2)} us per row in calls of ${times.batchRows} rows`],
    )
  return table(rows)
}
