/**
 * Patching a value into the text of a document gives the same result as overlaying it on the parsed document.
 * If the position in the text is ambiguous, there is no result.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { patchText } from './document-patch.ts'
import { overlayValue } from './entity-view.ts'

const at = Date.UTC(2026, 0, 2)
const stream = (value: Json, more: { dataset?: string; mirror?: string } = {}) => ({
  name: 'a',
  dataset: '',
  mirror: undefined,
  time: at,
  value,
  ...more,
})

function overlaidOn(entity: Entity, one: ReturnType<typeof stream>): string {
  const copy = JSON.parse(JSON.stringify(entity)) as Entity
  overlayValue(copy, one, one.time, one.value)
  return JSON.stringify(copy)
}

const text = fc.oneof(
  fc.string(),
  fc.constantFrom('"a":', 'a', '\\', '{"a":{"type":"Property","value":1,"observedAt":"', '","observedAt":"'),
)
const scalar = fc.oneof(text, fc.integer(), fc.double({ noNaN: true }), fc.boolean(), fc.constant(null))
const members = fc.record(
  {
    unitCode: text,
    observedAt: fc.constant('2026-01-01T00:00:00Z'),
    datasetId: fc.constant('urn:d:1'),
    sub: fc.record({ type: fc.constant('Property'), value: text }),
    a: fc.record({ type: fc.constant('Property'), value: scalar, observedAt: fc.constant('x') }),
  },
  { requiredKeys: [] },
)
const instance = fc
  .tuple(fc.oneof(scalar, fc.record({ a: text })), members, fc.boolean())
  .map(([value, more, isFirst]) =>
    isFirst ? { type: 'Property', value, ...more } : { ...more, type: 'Property', value },
  )
const entity = fc
  .record({
    before: instance,
    a: fc.oneof(instance, fc.tuple(instance, instance)),
    'b"a': instance,
    m: instance,
  })
  .map((attributes) => ({ id: 'urn:e:0', type: 'T', ...attributes }) as unknown as Entity)

describe('a value patched into a text', () => {
  it('equals the value overlaid on the document', () => {
    fc.assert(
      fc.property(entity, scalar, fc.constantFrom(undefined, 'm', 'before'), (document, value, mirror) => {
        const { datasetId } = document['a'] as { datasetId?: string }
        // The instance of a live stream is in the document.
        fc.pre(Array.isArray(document['a']) || datasetId === undefined)
        const one = stream(value as Json, mirror === undefined ? {} : { mirror })
        const patched = patchText(JSON.stringify(document), one)
        if (patched !== undefined) expect(patched).toBe(overlaidOn(document, one))
      }),
      { numRuns: 2000 },
    )
  })

  it('finds an attribute with sub-attributes, and the attribute rendered from its time', () => {
    const document = {
      id: 'urn:e:0',
      type: 'T',
      note: { type: 'Property', value: 'says "a": and {' },
      a: {
        type: 'Property',
        value: -1.5e-7,
        unitCode: 'CEL',
        observedAt: 'x',
        by: { type: 'Property', value: 1 },
      },
      m: { type: 'Property', value: 'x' },
    } as unknown as Entity
    const one = stream(22.5, { mirror: 'm' })
    expect(patchText(JSON.stringify(document), one)).toBe(overlaidOn(document, one))
  })

  it.each([
    [
      'instance of a dataset',
      stream(1, { dataset: 'urn:d:1' }),
      { a: { type: 'Property', value: 1, observedAt: 'x' } },
    ],
    [
      'name that stands twice',
      stream(1),
      { b: { type: 'Property', value: { a: 1 } }, a: { type: 'Property', value: 1, observedAt: 'x' } },
    ],
    ['value that is an object', stream(1), { a: { type: 'Property', value: {}, observedAt: 'x' } }],
    ['document without the attribute', stream(1), {}],
  ])('says nothing of an %s', (_, one, attributes) => {
    expect(patchText(JSON.stringify({ id: 'urn:e:0', type: 'T', ...attributes }), one)).toBeUndefined()
  })
})
