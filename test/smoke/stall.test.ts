/**
 * A short form of the stall campaign: a few hostile requests to a real gateway. The bound is generous, so
 * that the test fails only if a mechanism fails; `npm run stall` runs all cases with the bound for an idle
 * machine.
 */
import { expect, it } from 'vitest'
import { runStalls } from '#test/stall/campaign.ts'
import { stallCases } from '#test/stall/cases.ts'

const names = [
  'over 300 texts',
  'nested arrays of the largest body',
  'a body of members',
  'arrays 1,000,000 deep',
]

it('hostile requests do not stall the event loop', async () => {
  const cases = stallCases.filter(({ name }) => names.some((part) => name.includes(part)))
  expect(cases).toHaveLength(6)
  const rows = await runStalls(cases, {
    entities: 1000,
    isLoaded: false,
    hasAllPlugins: false,
    tell: () => {},
  })
  expect(rows.filter(({ delayMs }) => delayMs > 300)).toEqual([])
})
