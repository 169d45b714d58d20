/** Hashes of entities, which other gateways compute alike. */
import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { createStateHash } from './digest.ts'

const stateHash = createStateHash()

/** The first 48 bits of the hash of a canonical text. */
const expected = (text: string): number => Number.parseInt(hash('sha1', text).slice(0, 12), 16)

describe('the hash of a state', () => {
  // Gateways of different versions compare these hashes.
  it('is the hash of the canonical text', () => {
    const entity = {
      id: 'urn:x:1',
      type: ['B', 'A'],
      scope: ['/b', '/a'],
      one: { value: { z: [], y: {} }, type: 'Property' },
      more: [
        { type: 'Property', value: 'é"\n', datasetId: 'urn:d:2' },
        { type: 'Property', value: 2, datasetId: 'urn:d:1' },
      ],
    } as unknown as Entity
    const [first, second, third] = [
      '{"datasetId":"urn:d:1","type":"Property","value":2}',
      '{"datasetId":"urn:d:2","type":"Property","value":"é\\"\\n"}',
      '{"type":"Property","value":{"y":{},"z":[]}}',
    ]
    const attributes = [
      ['more', [first, second]],
      ['one', [third]],
    ]
    const canonical = JSON.stringify(['urn:x:1', ['A', 'B'], ['/a', '/b'], attributes])
    expect(stateHash(entity)).toBe(expected(canonical))
    expect(stateHash({ id: 'urn:x:2', type: 'A' })).toBe(expected('["urn:x:2",["A"],[],[]]'))
  })

  // Pieces of a long text must neither split a character nor change its escapes.
  it.each([
    ['one long text', 'x'.repeat(100_000)],
    ['characters of two code units', `x${'😀'.repeat(30_000)}`],
    ['halves of characters', `${'\udc00'.repeat(20_000)}${'\ud83d'.repeat(20_000)}"`],
    ['characters that are escaped', '"\\\n'.repeat(20_000)],
    ['many values', Array.from({ length: 20_000 }, (_, i) => [i / 7, `text "${i}"`, null, {}, true])],
    ['numbers', [-0, 1e300, 1e21, 1e-9, Number.POSITIVE_INFINITY]],
    ['many members', Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`m${10_000 + i}`, i]))],
  ])('is the same for %s, which is hashed in pieces', (_, value) => {
    const text = JSON.stringify([
      'urn:x:1',
      ['A'],
      [],
      [['n', [JSON.stringify({ type: 'Property', value })]]],
    ])
    const entity = { id: 'urn:x:1', type: 'A', n: { type: 'Property', value } } as unknown as Entity
    expect(stateHash(entity)).toBe(expected(text))
  })
})
