/**
 * Pattern models in ONNX: a graph gives the probability of each class of a window from its features. The
 * ONNX runtime runs in a process of its own, so the label of a window arrives later than the window. Pure.
 */
import { createHash } from 'node:crypto'
import type { Json } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Classified } from './distance-models.ts'
import { objectIn } from './model-json.ts'

export interface OnnxModel {
  readonly kind: 'onnx'
  /** The name of the gateway's ONNX model. */
  readonly name: string
  /** The ONNX file, if the client sent it; undefined for a model folder. */
  readonly file?: Buffer
}

/** ONNX files are protocol buffers that begin with the version of their format. */
export const isOnnx = (bytes: Buffer): boolean => bytes.length > 16 && bytes[0] === 0x08 && bytes[1]! < 0x40

/** The name depends on the content, so that a file is stored once. */
export function onnxModelOf(file: Buffer): OnnxModel {
  const digest = createHash('sha256').update(file).digest('hex')
  return { kind: 'onnx', name: `pattern-${digest.slice(0, 16)}`, file }
}

/** @throws ngsi-ld.bad-request-data */
export function parseOnnxName(json: JsonObject): OnnxModel {
  const name: Json | undefined = objectIn({ json, path: '' }, ['kind', 'name'])['name']
  if (typeof name === 'string' && /^[a-z][a-z0-9-]{0,63}$/.test(name)) return { kind: 'onnx', name }
  throw badRequestData('must be the name of a model folder with kind pattern', 'model.name')
}

/** Rounding of float32 sums. */
const sumTolerance = 1e-3

/**
 * The class with the largest probability, of equal ones the first. Undefined if the numbers are no
 * probabilities: 0 to 1 with the sum 1.
 */
export function classOf(probabilities: ArrayLike<number>): Classified | undefined {
  let sum = 0
  let label = 0
  for (let i = 0; i < probabilities.length; i++) {
    const share = probabilities[i]!
    if (!(share >= -sumTolerance)) return undefined
    sum += share
    if (share > probabilities[label]!) label = i
  }
  if (!(Math.abs(sum - 1) <= sumTolerance)) return undefined
  return { label, confidence: Math.min(1, probabilities[label]!) }
}
