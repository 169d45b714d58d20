/** The platform context in bodies that have none: each entity gets it, and nothing else changes. */
import { describe, expect, it } from 'vitest'
import { withContexts } from './missing-context.ts'

const contextsOf = (text: string): unknown => {
  const value = JSON.parse(withContexts(text)) as { '@context'?: unknown } | { '@context'?: unknown }[]
  return Array.isArray(value)
    ? value.map((one) => one['@context'] !== undefined)
    : value['@context'] !== undefined
}

describe('withContexts', () => {
  it('adds the context to an entity, and leaves numbers and texts as they are written', () => {
    const text = '{"id":"urn:a:1","n":12345678901234567890.10,"s":"{\\"not\\": [one]}"}'
    expect(withContexts(text)).toContain(text.slice(1))
    expect(contextsOf(text)).toBe(true)
  })

  it('adds it to each entity of a list, and to none of its members', () => {
    const text = '[ {"id":"urn:a:1","a":{"type":"Property","value":[{"b":1}]}}, {} ]'
    expect(contextsOf(text)).toEqual([true, true])
    expect(withContexts(text).match(/"@context"/g)).toHaveLength(2)
  })

  it('leaves other JSON and invalid JSON as it is', () => {
    for (const text of ['3', '"{"', '[', '{"a":', '[1,"{"]']) expect(withContexts(text)).toBe(text)
  })
})
