/**
 * Writes an ONNX file: nodes with numbers as attributes, float32 weights, inputs and outputs whose first
 * dimension counts rows. IR version 8 and opset 17, which every runtime in use reads.
 */
import {
  attributeFields,
  attributeKinds,
  classicalDomain,
  dimensionFields,
  float32,
  graphFields,
  int64,
  modelFields,
  nodeFields,
  opsetFields,
  shapeFields,
  tensorFields,
  tensorTypeFields,
  typeFields,
  valueFields,
} from './onnx-fields.ts'
import { bytesField, floatField, textField, varintField } from './protobuf.ts'

export interface WrittenNode {
  readonly operator: string
  /** '' unless given. */
  readonly domain?: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  /** Whole numbers, floats as `{float}`, and lists of whole numbers. */
  readonly attributes?: Readonly<Record<string, number | { readonly float: number } | readonly number[]>>
}

export interface WrittenTensor {
  readonly name: string
  /** Sizes after the number of rows. */
  readonly sizes: readonly number[]
}

export interface WrittenWeights {
  readonly name: string
  readonly sizes: readonly number[]
  /** Float32Array, or BigInt64Array for shapes and axes. */
  readonly values: Float32Array | BigInt64Array
}

export interface WrittenGraph {
  readonly nodes: readonly WrittenNode[]
  readonly weights: readonly WrittenWeights[]
  readonly inputs: readonly WrittenTensor[]
  readonly outputs: readonly WrittenTensor[]
}

export function writeGraph({ nodes, weights, inputs, outputs }: WrittenGraph): Uint8Array {
  const opset = (domain: string, version: number): Uint8Array =>
    bytesField(
      modelFields.opset,
      textField(opsetFields.domain, domain),
      varintField(opsetFields.version, version),
    )
  return Buffer.concat([
    varintField(modelFields.irVersion, 8),
    textField(modelFields.producer, 'selvedge'),
    bytesField(
      modelFields.graph,
      ...nodes.map(nodeBytes),
      textField(graphFields.name, 'model'),
      ...weights.map(weightBytes),
      ...inputs.map((one) => valueBytes(graphFields.input, one)),
      ...outputs.map((one) => valueBytes(graphFields.output, one)),
    ),
    opset('', 17),
    opset(classicalDomain, 3),
  ])
}

function nodeBytes({ operator, domain = '', inputs, outputs, attributes = {} }: WrittenNode): Uint8Array {
  return bytesField(
    graphFields.node,
    ...inputs.map((name) => textField(nodeFields.input, name)),
    ...outputs.map((name) => textField(nodeFields.output, name)),
    textField(nodeFields.operator, operator),
    ...Object.entries(attributes).map(([name, value]) => attributeBytes(name, value)),
    textField(nodeFields.domain, domain),
  )
}

function attributeBytes(
  name: string,
  value: number | { readonly float: number } | readonly number[],
): Uint8Array {
  const content =
    typeof value === 'number'
      ? [varintField(attributeFields.whole, value), varintField(attributeFields.kind, attributeKinds.whole)]
      : 'float' in value
        ? [
            floatField(attributeFields.float, value.float),
            varintField(attributeFields.kind, attributeKinds.float),
          ]
        : [
            ...value.map((one) => varintField(attributeFields.wholes, one)),
            varintField(attributeFields.kind, attributeKinds.wholes),
          ]
  return bytesField(nodeFields.attribute, textField(attributeFields.name, name), ...content)
}

function weightBytes({ name, sizes, values }: WrittenWeights): Uint8Array {
  return bytesField(
    graphFields.initializer,
    ...sizes.map((size) => varintField(tensorFields.dimension, size)),
    varintField(tensorFields.kind, values instanceof Float32Array ? float32 : int64),
    textField(tensorFields.name, name),
    // Little-endian on every board that is supported.
    bytesField(tensorFields.raw, new Uint8Array(values.buffer, values.byteOffset, values.byteLength)),
  )
}

function valueBytes(field: number, { name, sizes }: WrittenTensor): Uint8Array {
  const dimensions = [
    textField(dimensionFields.symbol, 'rows'),
    ...sizes.map((size) => varintField(dimensionFields.size, size)),
  ].map((one) => bytesField(shapeFields.dimension, one))
  const tensor = bytesField(
    typeFields.tensor,
    varintField(tensorTypeFields.element, float32),
    bytesField(tensorTypeFields.shape, ...dimensions),
  )
  return bytesField(field, textField(valueFields.name, name), bytesField(valueFields.type, tensor))
}
