/** Entity tags: what is written is read back, and what others write never passes for it. */
import { describe, expect, it } from 'vitest'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { versionsOf, versionTag } from './version-tag.ts'

describe('version tags', () => {
  it('are parsed to their version, for every representation', () => {
    const plain = versionTag(42, 'application/json', coreContext)
    const other = versionTag(43, 'application/ld+json', coreContext)
    expect(plain).toBe('"42"')
    expect(other).toMatch(/^"43-[0-9a-z]+"$/)
    expect(versionsOf(`${plain}, ${other}`)).toEqual(new Set([42, 43]))
  })

  it('match nothing if weak or foreign, and everything if absent', () => {
    expect(versionsOf('W/"42"')).toEqual(new Set())
    expect(versionsOf('"a5", "42-x y"'.replace(' y', ''))).toEqual(new Set([42]))
    expect(versionsOf('"abc"')).toEqual(new Set())
    expect(versionsOf('*')).toBeUndefined()
    expect(versionsOf(undefined)).toBeUndefined()
  })

  it.each(['42', '"42', '"1" "2"', ''])('are refused as %s', (text) => {
    expect(() => versionsOf(text)).toThrow('If-Match')
  })
})
