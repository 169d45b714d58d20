/**
 * An ONNX file without a folder as the files of a model folder: its description is made from the graph. The
 * author gave no golden vectors, so the check of the folder is that one row has finite outputs.
 */
import { createHash } from 'node:crypto'
import { GatewayError } from '#base/register/errors.ts'
import type { ModelFile } from '#contract'
import { type GraphTensor, readGraph } from '#inference/onnx/graph-reader.ts'
import { float32 } from '#inference/onnx/onnx-fields.ts'
import type { UploadedFiles } from './uploads.ts'

/** Any finite output is as good as the expected one; NaN and infinity are not. */
const anyFinite = 1e300

/** @throws model.invalid */
export function describedFiles({ file, inputNumbers, card, ...model }: ModelFile): UploadedFiles {
  const graph = readGraph(file)
  const { inputs } = graph
  const outputs = graph.outputs.filter(({ element }) => element === float32)
  const [input, output] = [inputs[0], outputs[0]]
  if (input === undefined || inputs.length > 1)
    throw invalid(`the graph has ${inputs.length} inputs, expected one`)
  const given = input.shape?.[1] ?? inputNumbers
  if (given !== inputNumbers)
    throw invalid(`the input ${input.name} has ${given} numbers, expected ${inputNumbers}`)
  if (output === undefined || outputs.length > 1)
    throw invalid(`the graph has ${outputs.length} outputs of type float32, expected one`)
  const classes = widthOf(output)
  const document = {
    ...model,
    version: '1',
    inputs: [{ name: input.name, shape: [null, inputNumbers] }],
    outputs: [{ name: output.name, shape: [null, classes] }],
    sha256: createHash('sha256').update(file).digest('hex'),
  }
  const vector = { input: new Array(inputNumbers).fill(0), output: new Array(classes).fill(0) }
  return new Map([
    ['model.json', jsonBytes(document)],
    ['model.onnx', file],
    ['golden.json', jsonBytes({ tolerance: anyFinite, vectors: [vector] })],
    ['card.md', Buffer.from(card)],
  ])
}

function widthOf({ name, shape }: GraphTensor): number {
  const width = shape?.[1]
  if (shape?.length === 2 && typeof width === 'number') return width
  throw invalid(`the output ${name} has the shape ${JSON.stringify(shape)}, expected [rows, numbers]`)
}

const jsonBytes = (value: object): Uint8Array => Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`)

const invalid = (reason: string): GatewayError => new GatewayError('model.invalid', `model.onnx: ${reason}`)
