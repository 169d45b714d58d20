/** Comparing JSON values and writing them in canonical order. */
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { own, sameJson, stableJson } from './json.ts'

const deep = JSON.parse('{"b": [1, {"d": null, "c": "x"}], "a": true, "__proto__": {"z": 0}}') as Json

describe('equality', () => {
  it.each<[Json | undefined, Json | undefined, boolean]>([
    [deep, JSON.parse('{"__proto__": {"z": 0}, "a": true, "b": [1, {"c": "x", "d": null}]}'), true],
    [[1, 2], [1, 2], true],
    [[1, 2], [2, 1], false],
    [[1], [1, 1], false],
    [[], {}, false],
    [{ a: 1 }, { b: 1 }, false],
    [{ a: 1 }, { a: 1, b: 1 }, false],
    [{ toString: 1 }, { a: 1 }, false],
    [null, {}, false],
    ['1', 1, false],
    [undefined, undefined, true],
  ])('of %j and %j', (a, b, same) => {
    expect(sameJson(a, b)).toBe(same)
    expect(sameJson(b, a)).toBe(same)
  })
})

describe('text', () => {
  it('does not depend on the order of members', () => {
    expect(stableJson(deep)).toBe('{"__proto__":{"z":0},"a":true,"b":[1,{"c":"x","d":null}]}')
    expect(JSON.parse(stableJson(deep))).toEqual(deep)
  })
})

describe('own members', () => {
  it('exclude those that every object inherits', () => {
    expect(own<unknown>({}, 'constructor')).toBeUndefined()
    expect(own<unknown>({ constructor: 1 }, 'constructor')).toBe(1)
  })
})
