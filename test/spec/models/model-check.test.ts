/** What makes a model folder usable, checked by the real process that runs models. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { createInferenceLink } from '#inference/child/inference-link.ts'
import { readModelDocument } from '#inference/folders/model-folder.ts'
import { type LinearFolder, linearGraph, writeModel } from '#test/kit/onnx-models.ts'

const scratch = mkdtempSync(join(tmpdir(), 'selvedge-models-'))
const log = createLog({ level: 'error', clock: systemClock, write: () => undefined })
const link = createInferenceLink({ clock: systemClock, log, metrics: createMetrics() })
afterAll(async () => {
  await link.stop()
  rmSync(scratch, { recursive: true, force: true })
})

let count = 0
/** Writes a folder, checks it, and returns the rows' outputs of a call. */
async function checked(options: LinearFolder, change?: (folder: string) => void): Promise<Float32Array> {
  const folder = writeModel(join(scratch, String(count++)), options)
  change?.(folder)
  const document = await readModelDocument(folder)
  await link.request({ kind: 'load', key: folder, folder, document }, 'loaded', 60_000)
  const inputs = Float32Array.from([1, 0, 0, 0, 1, 0])
  const { outputs } = await link.request({ kind: 'run', key: folder, rows: 2, inputs }, 'outputs', 60_000)
  await link.request({ kind: 'unload', key: folder }, 'unloaded', 60_000)
  return outputs
}

describe('a model folder', () => {
  it('is used if all its checks pass', async () => {
    expect([...(await checked({}))]).toEqual([1.5, 2.5])
  })

  it('scales inputs by its scaler before the model runs', async () => {
    const scaler = { mean: [1, 0, 0], deviation: [0.5] }
    const golden = { tolerance: 1e-5, vectors: [{ input: [1, 0, 0], output: [0.5] }] }
    expect([...(await checked({ document: { scaler }, golden }))]).toEqual([0.5, 2.5])
  })

  it('may have several inputs and outputs, whose rows are joined', async () => {
    const graph = {
      ...linearGraph,
      nodes: [
        { operator: 'Concat', inputs: ['a', 'b'], outputs: ['x'], attributes: { axis: 1 } },
        ...linearGraph.nodes,
        { operator: 'Neg', inputs: ['a'], outputs: ['z'] },
      ],
      inputs: [
        { name: 'a', sizes: [1] },
        { name: 'b', sizes: [2] },
      ],
      outputs: [
        { name: 'y', sizes: [1] },
        { name: 'z', sizes: [1] },
      ],
    }
    const document = {
      inputs: [
        { name: 'a', shape: [null, 1] },
        { name: 'b', shape: [null, 2], property: 'temperature', unit: 'CEL' },
      ],
      outputs: [
        { name: 'y', shape: [null, 1] },
        { name: 'z', shape: [null, 1] },
      ],
    }
    const golden = { tolerance: 1e-5, vectors: [{ input: [1, 0, 0], output: [1.5, -1] }] }
    expect([...(await checked({ graph, document, golden }))]).toEqual([1.5, -1, 2.5, -0])
  })
})

type Change = (folder: string) => void
const wrong: [string, LinearFolder, RegExp, Change?][] = [
  [
    'another hash',
    { document: { sha256: '0'.repeat(64) } },
    /model\.onnx: its SHA-256 is [0-9a-f]{64}, model\.json expects 0{64}/,
  ],
  [
    'an operator that may run forever',
    { graph: { ...linearGraph, nodes: [{ operator: 'Loop', inputs: ['x'], outputs: ['y'] }] } },
    /model\.onnx: operator Loop is not allowed/,
  ],
  [
    'an operator of another vendor',
    {
      graph: {
        ...linearGraph,
        nodes: [{ operator: 'Gemm', domain: 'com.example', inputs: ['x'], outputs: ['y'] }],
      },
    },
    /operator com\.example\.Gemm is not allowed/,
  ],
  [
    'a file that is no model',
    { file: Buffer.from('not a model') },
    /model\.onnx: the file is not an ONNX model/,
  ],
  [
    'a file that is too large',
    { file: Buffer.alloc(5 * 1024 * 1024 + 1) },
    /has 5242881 bytes, at most 5242880/,
  ],
  [
    'other outputs than its golden vectors',
    { golden: { tolerance: 1e-5, vectors: [{ input: [1, 1, 1], output: [6.6] }] } },
    /golden\.json: vectors\[0\]\.output\[0\]: the model gives 6\.5, expected 6\.6/,
  ],
  [
    'golden vectors with unknown keys',
    { golden: { tolerance: 1, vectors: [], more: 1 } },
    /golden\.json: more: expected one of/,
  ],
  [
    'golden vectors of another width',
    { golden: { tolerance: 1, vectors: [{ input: [1], output: [1] }] } },
    /vectors\[0\]\.input: expected a list of 3 numbers/,
  ],
  [
    'another shape than model.json',
    { document: { inputs: [{ name: 'x', shape: [null, 4] }] } },
    /input x has the shape \[null,3\], model\.json expects \[null,4\]/,
  ],
  [
    'an output of another name',
    { document: { outputs: [{ name: 'score', shape: [null, 1] }] } },
    /it has no output score/,
  ],
  ['no card', {}, /card\.md: the file is missing/, (folder) => rmSync(join(folder, 'card.md'))],
  [
    'a link instead of a file',
    {},
    /model\.onnx: the file cannot be read \(ELOOP\)/,
    (folder) => {
      rmSync(join(folder, 'model.onnx'))
      symlinkSync('/etc/hostname', join(folder, 'model.onnx'))
    },
  ],
  [
    'a folder instead of a file',
    {},
    /golden\.json: expected a regular file/,
    (folder) => {
      rmSync(join(folder, 'golden.json'))
      mkdirSync(join(folder, 'golden.json'))
    },
  ],
  [
    'an unknown key in model.json',
    { document: { asign: {} } },
    /asign: \{\}: expected one of name, version.*; did you mean assign\?/,
  ],
  [
    'another name than its folder',
    { document: { name: 'other' } },
    /name: "other": expected the name of the folder, linear/,
  ],
  [
    'two ways of assignment',
    { document: { assign: { property: 'a', q: 'b' } } },
    /assign: .*expected exactly one of property, stream and q/,
  ],
  [
    'a scaler of another width',
    { document: { scaler: { mean: [1, 2], deviation: [1] } } },
    /scaler\.mean: .*expected one entry, or one for each of the 3 numbers/,
  ],
  [
    'a first dimension that is not null',
    { document: { inputs: [{ name: 'x', shape: [1, 3] }] } },
    /inputs\[0\]\.shape: \[1,3\]: expected a list of null/,
  ],
  ['no JSON', {}, /model\.json/, (folder) => writeFileSync(join(folder, 'model.json'), '{')],
]

describe('a model folder is refused for', () => {
  it.each(wrong)('%s', async (_what, options, reason, change) => {
    await expect(checked(options, change)).rejects.toThrow(reason)
  })

  it('weights in another file', async () => {
    // Initializer with data_location = EXTERNAL, in a file without anything else.
    const tensor = Buffer.from([0x70, 0x01])
    const graph = Buffer.from([0x2a, tensor.length, ...tensor])
    const file = Buffer.from([0x3a, graph.length, ...graph])
    await expect(checked({ file })).rejects.toThrow(/weights in other files are not allowed/)
  })
})
