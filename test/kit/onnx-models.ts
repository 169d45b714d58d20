/** Model folders for tests: a linear model, and changes of its files that make it wrong; and the models of a folder. */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLog, type Log } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { createModels, type Models, type ModelsSettings } from '#inference/models.ts'
import { type WrittenGraph, writeGraph } from '#inference/onnx/graph-writer.ts'

export interface LinearFolder {
  readonly name?: string
  /** Members of model.json that replace or extend those of the linear model; undefined removes one. */
  readonly document?: Readonly<Record<string, unknown>>
  readonly golden?: unknown
  readonly graph?: WrittenGraph
  /** Bytes of model.onnx, if not those of the graph. */
  readonly file?: Uint8Array
}

/** y = x0 + 2 x1 + 3 x2 + 0.5. */
export const linearGraph: WrittenGraph = {
  nodes: [{ operator: 'Gemm', inputs: ['x', 'weights', 'bias'], outputs: ['y'] }],
  weights: [
    { name: 'weights', sizes: [3, 1], values: Float32Array.from([1, 2, 3]) },
    { name: 'bias', sizes: [1], values: Float32Array.from([0.5]) },
  ],
  inputs: [{ name: 'x', sizes: [3] }],
  outputs: [{ name: 'y', sizes: [1] }],
}

/** Writes the folder of a model into `parent`. Returns its path. */
export function writeModel(parent: string, { name = 'linear', ...options }: LinearFolder = {}): string {
  const folder = join(parent, name)
  mkdirSync(folder, { recursive: true })
  const file = options.file ?? writeGraph(options.graph ?? linearGraph)
  const document = {
    name,
    version: '1',
    kind: 'virtual-sensor',
    inputs: [{ name: 'x', shape: [null, 3] }],
    outputs: [{ name: 'y', shape: [null, 1] }],
    licence: 'CC0-1.0',
    sha256: createHash('sha256').update(file).digest('hex'),
    ...options.document,
  }
  const golden = options.golden ?? {
    tolerance: 1e-5,
    vectors: [
      { input: [1, 1, 1], output: [6.5] },
      { input: [0, 0, -1], output: [-2.5] },
    ],
  }
  writeFileSync(join(folder, 'model.onnx'), file)
  writeFileSync(join(folder, 'model.json'), JSON.stringify(document, undefined, 2))
  writeFileSync(join(folder, 'golden.json'), JSON.stringify(golden))
  writeFileSync(join(folder, 'card.md'), '# Linear\n')
  return folder
}

const silent = createLog({ level: 'error', clock: systemClock, write: () => undefined })

/** The models of `models` in a folder, as uploaded; with settings and another entry file of the process if given. */
export function modelsIn(
  folder: string,
  log: Log = silent,
  { program, ...settings }: Partial<ModelsSettings> & { readonly program?: URL } = {},
): Models {
  return createModels(
    { clock: systemClock, log, metrics: createMetrics(), expand: (name) => name, program },
    {
      isEnabled: true,
      shipped: join(folder, 'shipped'),
      uploaded: join(folder, 'models'),
      assign: [],
      ...settings,
    },
  )
}
