/**
 * A fitted linear model as the files of a model folder: one Gemm. The outputs in its golden vectors are
 * computed here in double precision. So the check of the folder compares them with the ONNX runtime.
 */
import { createHash } from 'node:crypto'
import type { LinearModel } from '#contract'
import { writeGraph } from '#inference/onnx/graph-writer.ts'
import type { UploadedFiles } from './uploads.ts'

/** Relative difference between float32 and double precision that is accepted. */
const tolerance = 1e-4

export function linearFiles(model: LinearModel): UploadedFiles {
  const { name, version, kind, coefficients, intercept, scaler, property, unit, stream } = model
  const width = coefficients.length
  const graph = writeGraph({
    nodes: [{ operator: 'Gemm', inputs: ['inputs', 'coefficients', 'intercept'], outputs: ['output'] }],
    weights: [
      { name: 'coefficients', sizes: [width, 1], values: Float32Array.from(coefficients) },
      { name: 'intercept', sizes: [1], values: Float32Array.of(intercept) },
    ],
    inputs: [{ name: 'inputs', sizes: [width] }],
    outputs: [{ name: 'output', sizes: [1] }],
  })
  const document = {
    name,
    version,
    kind,
    inputs: [{ name: 'inputs', shape: [null, width] }],
    outputs: [{ name: 'output', shape: [null, 1], property, unit }],
    scaler,
    trainedRange: model.trainedRange,
    assign: stream === undefined ? undefined : { stream },
    licence: model.licence,
    sha256: createHash('sha256').update(graph).digest('hex'),
  }
  const vectors = model.examples.map((input) => ({ input, output: [linearOutput(model, input)] }))
  return new Map([
    ['model.json', jsonBytes(document)],
    ['model.onnx', graph],
    ['golden.json', jsonBytes({ tolerance, vectors })],
    ['card.md', Buffer.from(model.card)],
  ])
}

function linearOutput({ coefficients, intercept, scaler }: LinearModel, input: readonly number[]): number {
  const at = (list: readonly number[], i: number): number => list[list.length === 1 ? 0 : i]!
  const scaled = (number: number, i: number): number =>
    scaler === undefined ? number : (number - at(scaler.mean, i)) / at(scaler.deviation, i)
  return coefficients.reduce((sum, one, i) => sum + one * scaled(input[i]!, i), intercept)
}

const jsonBytes = (value: object): Uint8Array => Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`)
