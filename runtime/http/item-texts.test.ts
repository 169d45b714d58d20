/** Lists cut into items: the same items as parsing the whole gives, and no others. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isGatewayError } from '#base/errors.ts'
import { splitList } from './item-texts.ts'

const itemsOf = (text: string): unknown[] => {
  const items = splitList(Buffer.from(text), 10_000)
  return Array.from({ length: items.length }, (_, i): unknown => JSON.parse(items.text(i).toString()))
}

it('gives what parsing the whole list gives, however it is written', () => {
  const text = fc
    .array(fc.constantFrom('"', '\\', ',', '[', ']', '{', '}', 'é', '😀'))
    .map((all) => all.join(''))
  const item = fc.oneof(text, fc.integer(), fc.record({ a: text, b: fc.array(text) }), fc.constant(null))
  const list = fc.array(item, { minLength: 1 })
  fc.assert(
    fc.property(list, fc.constantFrom(undefined, 1, '\t'), (items, indent) => {
      const text = JSON.stringify(items, null, indent)
      expect(itemsOf(`\n ${text} \r\n`)).toEqual(JSON.parse(text))
    }),
    { numRuns: 300 },
  )
})

it('takes nothing that is no JSON list: parsing the whole refuses it too', () => {
  const piece = fc.constantFrom(
    '[',
    ']',
    '{',
    '}',
    ',',
    '"',
    '\\',
    ':',
    '1',
    'a',
    ' ',
    '"a"',
    '{"a":[1,"]"]}',
  )
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const text = `[${pieces.join('')}`
      let cut: unknown
      try {
        cut = itemsOf(text)
      } catch (error) {
        expect(isGatewayError(error) || error instanceof SyntaxError).toBe(true)
        return
      }
      expect(cut).toEqual(JSON.parse(text))
    }),
    { numRuns: 2000 },
  )
})

it.each(['', '{}', '7', '"a"', '[', '[1', '[1]]', '[1] x', '[1,]', '[,1]', '[]', '["a]', '[1}', '["\\"]'])(
  'refuses %s',
  (text) => {
    expect(() => itemsOf(text)).toThrow()
  },
)

it('refuses more items than there may be, before it has looked at all of them', () => {
  expect(() => splitList(Buffer.from('[1,2,3,"never ends]'), 2)).toThrow('more than 2 items')
})
