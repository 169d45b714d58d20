/**
 * Reads what the loader checks of an ONNX file: its operators, inputs and outputs. Refuses content that
 * needs other files or nested graphs. Weights are not interpreted. Fields of another kind than the format
 * states are ignored, as by the ONNX runtime.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import {
  attributeFields,
  dimensionFields,
  graphFields,
  modelFields,
  nodeFields,
  shapeFields,
  tensorFields,
  tensorTypeFields,
  typeFields,
  valueFields,
} from './onnx-fields.ts'
import { fieldsOf } from './protobuf.ts'

export interface GraphTensor {
  readonly name: string
  /** ONNX element type; 1 is float32. */
  readonly element: number
  /** Sizes; null for a size that the caller decides. Undefined if the file states no shape. */
  readonly shape: readonly (number | null)[] | undefined
}

export interface Graph {
  /** Operators, each once, with their domain. */
  readonly operators: readonly { readonly domain: string; readonly operator: string }[]
  /** Without initializers, which have values in the file. */
  readonly inputs: readonly GraphTensor[]
  readonly outputs: readonly GraphTensor[]
}

/** @throws model.invalid */
export function readGraph(file: Uint8Array): Graph {
  let graph: Uint8Array | undefined
  for (const { field, bytes } of fieldsOf(file)) {
    if (field === modelFields.graph && bytes !== undefined) {
      // The runtime would merge them.
      if (graph !== undefined) throw invalid('more than one graph is not allowed')
      graph = bytes
    }
    if (field === modelFields.functions) throw invalid('functions of the file are not allowed; inline them')
    if (field === modelFields.training) throw invalid('training information is not allowed; remove it')
  }
  if (graph === undefined) throw invalid('the file is not an ONNX model: it has no graph')
  return contentOf(graph)
}

function contentOf(graph: Uint8Array): Graph {
  const operators = new Map<string, Graph['operators'][number]>()
  const inputs: GraphTensor[] = []
  const outputs: GraphTensor[] = []
  const initialized = new Set<string>()
  let nodes = 0
  for (const { field, bytes } of fieldsOf(graph)) {
    if (bytes === undefined) continue
    if (field === graphFields.node) {
      const one = nodeOf(bytes)
      operators.set(`${one.domain} ${one.operator}`, one)
      nodes++
    } else if (field === graphFields.initializer) initialized.add(initializerOf(bytes))
    else if (field === graphFields.sparseInitializer) throw noSparse()
    else if (field === graphFields.input) inputs.push(tensorOf(bytes))
    else if (field === graphFields.output) outputs.push(tensorOf(bytes))
  }
  if (nodes > limits.modelNodesMax.value)
    throw invalid(`the graph has ${nodes} nodes, at most ${limits.modelNodesMax.value} are allowed`)
  return {
    operators: [...operators.values()],
    inputs: inputs.filter(({ name }) => !initialized.has(name)),
    outputs,
  }
}

function nodeOf(node: Uint8Array): Graph['operators'][number] {
  let domain = ''
  let operator = ''
  for (const { field, bytes } of fieldsOf(node)) {
    if (bytes === undefined) continue
    if (field === nodeFields.operator) operator = textOf(bytes)
    else if (field === nodeFields.domain) domain = textOf(bytes)
    else if (field === nodeFields.attribute) checkAttribute(bytes)
  }
  return { domain, operator }
}

function checkAttribute(attribute: Uint8Array): void {
  for (const { field, bytes } of fieldsOf(attribute)) {
    if (bytes === undefined) continue
    if (field === attributeFields.graph || field === attributeFields.graphs)
      throw invalid('nested graphs are not allowed')
    if (field === attributeFields.sparse || field === attributeFields.sparses) throw noSparse()
    if (field === attributeFields.tensor || field === attributeFields.tensors) initializerOf(bytes)
  }
}

/** The name of an initializer. */
function initializerOf(tensor: Uint8Array): string {
  let name = ''
  for (const { field, number, bytes } of fieldsOf(tensor)) {
    if (field === tensorFields.name && bytes !== undefined) name = textOf(bytes)
    if (field === tensorFields.external || (field === tensorFields.location && number !== 0))
      throw invalid('weights in other files are not allowed; store them in model.onnx')
  }
  return name
}

function tensorOf(value: Uint8Array): GraphTensor {
  const name = lastBytes(value, valueFields.name)
  const type = lastBytes(value, valueFields.type)
  const tensor = type && lastBytes(type, typeFields.tensor)
  const shape = tensor && lastBytes(tensor, tensorTypeFields.shape)
  return {
    name: name === undefined ? '' : textOf(name),
    element: (tensor && lastNumber(tensor, tensorTypeFields.element)) ?? 0,
    shape:
      shape &&
      [...fieldsOf(shape)].flatMap(({ field, bytes }) =>
        field === shapeFields.dimension && bytes !== undefined
          ? [lastNumber(bytes, dimensionFields.size) ?? null]
          : [],
      ),
  }
}

/** The last of several fields counts. */
const lastBytes = (message: Uint8Array, wanted: number): Uint8Array | undefined =>
  [...fieldsOf(message)].findLast(({ field, bytes }) => field === wanted && bytes !== undefined)?.bytes

const lastNumber = (message: Uint8Array, wanted: number): number | undefined =>
  [...fieldsOf(message)].findLast(({ field, number }) => field === wanted && number !== undefined)?.number

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

/** Their values may lie in other files. */
const noSparse = (): GatewayError => invalid('sparse tensors are not allowed; store dense ones')

const invalid = (reason: string): GatewayError => new GatewayError('model.invalid', reason)
