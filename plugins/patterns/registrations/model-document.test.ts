/** Documents of models: the forms of a model, and the errors for what is none. */
import { deflateSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { parsePatternModel } from './model-document.ts'

const model = {
  weights: [0.5, 0.5],
  means: [
    [0, 1],
    [1, 0],
  ],
  covariances: [
    [
      [1, 0],
      [0, 1],
    ],
    [
      [1, 0],
      [0, 1],
    ],
  ],
}
const properties = ['urn:p:1', 'urn:p:2']
const parse = (more: object) =>
  parsePatternModel('m', { observableProperties: properties, model, ...more } as never)
const base64 = (bytes: string | Buffer): string => Buffer.from(bytes).toString('base64')

/** `pickle.dumps(OrderedDict(a=date(2026, 1, 1)), protocol)` for protocols 0 to 5. */
const picklesByProtocol = [
  'Y2NvbGxlY3Rpb25zCk9yZGVyZWREaWN0CnAwCih0UnAxClZhCnAyCmNkYXRldGltZQpkYXRlCnAzCihjX2NvZGVjcwplbmNvZGUKcDQKKFYH6gEBCnA1ClZsYXRpbjEKcDYKdHA3ClJwOAp0cDkKUnAxMApzLg==',
  'Y2NvbGxlY3Rpb25zCk9yZGVyZWREaWN0CnEAKVJxAVgBAAAAYXECY2RhdGV0aW1lCmRhdGUKcQMoY19jb2RlY3MKZW5jb2RlCnEEKFgFAAAAB8OqAQFxBVgGAAAAbGF0aW4xcQZ0cQdScQh0cQlScQpzLg==',
  'gAJjY29sbGVjdGlvbnMKT3JkZXJlZERpY3QKcQApUnEBWAEAAABhcQJjZGF0ZXRpbWUKZGF0ZQpxA2NfY29kZWNzCmVuY29kZQpxBFgFAAAAB8OqAQFxBVgGAAAAbGF0aW4xcQaGcQdScQiFcQlScQpzLg==',
  'gANjY29sbGVjdGlvbnMKT3JkZXJlZERpY3QKcQApUnEBWAEAAABhcQJjZGF0ZXRpbWUKZGF0ZQpxA0MEB+oBAXEEhXEFUnEGcy4=',
  'gASVRgAAAAAAAACMC2NvbGxlY3Rpb25zlIwLT3JkZXJlZERpY3SUk5QpUpSMAWGUjAhkYXRldGltZZSMBGRhdGWUk5RDBAfqAQGUhZRSlHMu',
  'gAWVRgAAAAAAAACMC2NvbGxlY3Rpb25zlIwLT3JkZXJlZERpY3SUk5QpUpSMAWGUjAhkYXRldGltZZSMBGRhdGWUk5RDBAfqAQGUhZRSlHMu',
]

describe('a document of a model', () => {
  it('has the defaults of the original component', () => {
    const { features, spatial, temporal, labels } = parse({})
    expect({ features, spatial, temporal, labels }).toEqual({
      features: 'originals',
      spatial: { kind: 'same-location' },
      temporal: { window: 12, step: 1 },
      labels: [],
    })
  })

  it('has its model as an object, as JSON text, or as base64 text', () => {
    for (const given of [model, JSON.stringify(model), base64(JSON.stringify(model))])
      expect(parse({ model: given }).model).toMatchObject({ kind: 'gaussian-mixture', featureCount: 2 })
  })

  it('is rejected with 415 for pickles of every protocol, and says how to convert them', () => {
    const pickles = picklesByProtocol.map((text) => Buffer.from(text, 'base64'))
    for (const bytes of [...pickles, deflateSync(pickles[3]!)]) {
      expect(() => parse({ model: base64(bytes) })).toThrow(/Convert it in Python/)
      expect(() => parse({ model: base64(bytes) })).toThrow(
        expect.objectContaining({ code: 'patterns.pickle' }),
      )
    }
  })

  it('has an ONNX model as base64 text of its file, or as the name of a folder', () => {
    const file = Buffer.concat([Buffer.from([0x08, 0x08, 0x12, 0x07]), Buffer.from('pytorch and a graph')])
    const { model: sent, features } = parse({ model: base64(file) })
    expect(sent).toEqual({ kind: 'onnx', name: expect.stringMatching(/^pattern-[0-9a-f]{16}$/), file })
    expect(features).toBe('segments')
    const named = parse({ model: { kind: 'onnx', name: 'site-classes' }, labels: ['one'] })
    expect(named).toMatchObject({ model: { kind: 'onnx', name: 'site-classes' }, labels: ['one'] })
    expect(() => parse({ model: { kind: 'onnx', name: '../x' } })).toThrow(/^model\.name: must be the name/)
  })

  it.each([
    [{ model: 'hello there' }, /^model: must be a JSON object/],
    [{ model: base64('hello there') }, /^model: must be a JSON object/],
    [{ model: 5 }, /^model: must be a JSON object/],
    [{ model: undefined }, /^model: must be a JSON object/],
    [{ model: { ...model, kind: 'oracle' } }, /^kind: must be one of/],
    [{ model: { ...model, weights: ['x', 1] } }, /^weights\[0\]/],
    [{ observableProperties: [] }, /^observableProperties: must be a list of 1 to 32/],
    [{ observableProperties: ['urn:p:1'] }, /^model: expects 2 features, but 1 observable properties have 1/],
    [{ features: 'segments' }, /^model: expects 2 features, but 2 observable properties have 16/],
    [{ features: 'none' }, /^features: must be originals or segments/],
    [{ labels: ['one'] }, /^labels: must have 2 labels/],
    [{ labels: [1, 2] }, /^labels: must be a list/],
    [{ temporal: { window: 1 } }, /^temporal\.window: must be a whole number of rows from 2/],
    [{ temporal: { windows: 5 } }, /^temporal\.windows: is unknown/],
    [{ temporal: { step: 0 } }, /^temporal\.step: must be a whole number of rows from 1/],
    [{ temporal: { hours: '7-19' } }, /^temporal\.hours: must be a span of the day/],
    [{ temporal: { hours: '07:00-24:30' } }, /^temporal\.hours: must be a span of the day/],
    [{ place: 'here' }, /^place: is not known here/],
    [{ name: 'n'.repeat(1_000_000) }, /^body: must have at most 1000000 bytes/],
  ])('is rejected with the path of the mistake: %#', (more, message) => {
    expect(() => parse(more)).toThrow(message)
  })
})
