/** ONNX files that a careless reader would read otherwise than the ONNX runtime does. */
import { describe, expect, it } from 'vitest'
import { readGraph } from './graph-reader.ts'
import { writeGraph } from './graph-writer.ts'
import { attributeFields, graphFields, modelFields, nodeFields } from './onnx-fields.ts'
import { bytesField, textField, varintField } from './protobuf.ts'

const linear = writeGraph({
  nodes: [{ operator: 'Neg', inputs: ['x'], outputs: ['y'] }],
  weights: [],
  inputs: [{ name: 'x', sizes: [3] }],
  outputs: [{ name: 'y', sizes: [3] }],
})
const graphOf = (...parts: readonly Uint8Array[]): Uint8Array => bytesField(modelFields.graph, ...parts)
const node = (...parts: readonly Uint8Array[]): Uint8Array => bytesField(graphFields.node, ...parts)
const loop = textField(nodeFields.operator, 'Loop')
const joined = (...parts: readonly Uint8Array[]): Uint8Array => Buffer.concat(parts)
/** A field of 4 bytes. */
const fixedField = (field: number, text: string): Uint8Array =>
  joined(Buffer.from([field * 8 + 5]), Buffer.from(text))

describe('an ONNX file', () => {
  it('is read with its operators, inputs and outputs', () => {
    expect(readGraph(linear)).toMatchObject({
      operators: [{ domain: '', operator: 'Neg' }],
      inputs: [{ name: 'x', element: 1, shape: [null, 3] }],
      outputs: [{ name: 'y', element: 1, shape: [null, 3] }],
    })
  })

  it('has one graph, since the runtime merges several', () => {
    expect(() => readGraph(joined(graphOf(node(loop)), linear))).toThrow(/more than one graph/)
  })

  it('has keys of 32 bits, since the runtime drops further ones', () => {
    // The key of the graph, and a bit above the 32nd.
    const key = Buffer.from([0x80 | (modelFields.graph * 8 + 2), 0x80, 0x80, 0x80, 0x10])
    const hidden = joined(key, graphOf(node(loop)).subarray(1))
    expect(() => readGraph(joined(hidden, linear))).toThrow(/protobuf encoding is damaged/)
  })

  it('has the operators and domains that are texts, whatever other kinds of these fields follow', () => {
    const disguised = node(
      loop,
      fixedField(nodeFields.operator, 'Relu'),
      textField(nodeFields.domain, 'com.example'),
      varintField(nodeFields.domain, 0),
    )
    expect(readGraph(graphOf(disguised)).operators).toEqual([{ domain: 'com.example', operator: 'Loop' }])
  })

  it('has no sparse tensors, whose values may lie in other files', () => {
    const sparse = [
      graphOf(bytesField(graphFields.sparseInitializer)),
      graphOf(node(bytesField(nodeFields.attribute, bytesField(attributeFields.sparse)))),
      graphOf(node(bytesField(nodeFields.attribute, bytesField(attributeFields.sparses)))),
    ]
    for (const file of sparse) expect(() => readGraph(file)).toThrow(/sparse tensors are not allowed/)
  })
})
