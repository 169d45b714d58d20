/** Lists cut into items: the same items as parsing the whole gives, and no others. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isGatewayError } from '#base/register/errors.ts'
import { splitList } from './item-texts.ts'

const itemsOf = async (text: string): Promise<unknown[]> => {
  const items = await splitList(Buffer.from(text), 10_000, async () => undefined)
  return Array.from({ length: items.length }, (_, i): unknown => JSON.parse(items.text(i).toString()))
}

it('returns the same items as parsing the whole list, in any formatting', async () => {
  // Long texts are searched in another way than short ones.
  const text = fc
    .tuple(
      fc.constantFrom(0, 25, 30, 35),
      fc.array(fc.constantFrom('"', '\\', ',', '[', ']', '{', '}', 'é', '😀')),
    )
    .map(([plain, all]) => 'a'.repeat(plain) + all.join(''))
  const item = fc.oneof(text, fc.integer(), fc.record({ a: text, b: fc.array(text) }), fc.constant(null))
  const list = fc.array(item, { minLength: 1 })
  await fc.assert(
    fc.asyncProperty(list, fc.constantFrom(undefined, 1, '\t'), async (items, indent) => {
      const text = JSON.stringify(items, null, indent)
      expect(await itemsOf(`\n ${text} \r\n`)).toEqual(JSON.parse(text))
    }),
    { numRuns: 300 },
  )
})

it('refuses all that is not a JSON list, as parsing the whole does', async () => {
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
  await fc.assert(
    fc.asyncProperty(fc.array(piece), async (pieces) => {
      const text = `[${pieces.join('')}`
      let cut: unknown
      try {
        cut = await itemsOf(text)
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
  async (text) => {
    await expect(itemsOf(text)).rejects.toThrow()
  },
)

it('refuses too many items before it has scanned all of them', async () => {
  const cut = splitList(Buffer.from('[1,2,3,"never ends]'), 2, async () => undefined)
  await expect(cut).rejects.toThrow('more than 2 items')
})

it('yields to other work while it scans a large body', async () => {
  let yields = 0
  const item = JSON.stringify({ text: 'x'.repeat(1000) })
  const body = Buffer.from(`[${Array.from({ length: 1000 }, () => item).join()}]`)
  const { length } = await splitList(body, 1000, async () => void yields++)
  expect(length).toBe(1000)
  expect(yields).toBeGreaterThanOrEqual(10)
})
