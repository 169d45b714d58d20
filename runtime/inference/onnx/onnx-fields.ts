/** Field numbers and constants of onnx.proto, as far as this room reads or writes them. */

export const modelFields = {
  irVersion: 1,
  producer: 2,
  graph: 7,
  opset: 8,
  training: 20,
  functions: 25,
} as const
export const opsetFields = { domain: 1, version: 2 } as const
export const graphFields = {
  node: 1,
  name: 2,
  initializer: 5,
  input: 11,
  output: 12,
  sparseInitializer: 15,
} as const
export const nodeFields = { input: 1, output: 2, operator: 4, attribute: 5, domain: 7 } as const
export const attributeFields = {
  name: 1,
  float: 2,
  whole: 3,
  tensor: 5,
  graph: 6,
  wholes: 8,
  tensors: 10,
  graphs: 11,
  kind: 20,
  sparse: 22,
  sparses: 23,
} as const
export const tensorFields = { dimension: 1, kind: 2, name: 8, raw: 9, external: 13, location: 14 } as const
export const valueFields = { name: 1, type: 2 } as const
export const typeFields = { tensor: 1 } as const
export const tensorTypeFields = { element: 1, shape: 2 } as const
export const shapeFields = { dimension: 1 } as const
export const dimensionFields = { size: 1, symbol: 2 } as const

/** Element type float32. */
export const float32 = 1
export const int64 = 7
/** Kinds of attributes. */
export const attributeKinds = { float: 1, whole: 2, wholes: 7 } as const
/** The operators for classical machine learning; those of neural networks have the domain ''. */
export const classicalDomain = 'ai.onnx.ml'
