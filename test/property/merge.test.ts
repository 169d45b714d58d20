/** Laws of writes to entities: invariants, inverses and idempotence. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import {
  attributeNames,
  type Entity,
  type Fragment,
  instancesOf,
  parseAttribute,
  parseEntity,
  parseFragment,
} from '#ngsi-ld/entity/entity.ts'
import { changesBetween, type Merged } from '#ngsi-ld/entity/entity-draft.ts'
import {
  appendAttributes,
  deleteAttribute,
  fromShape,
  mergeEntity,
  observationOf,
  reduceEntity,
  replaceEntity,
  shapeOf,
  updateAttributes,
} from '#ngsi-ld/entity/merge.ts'
import { renderEntity } from '#ngsi-ld/representation/representation.ts'

const nothing = 'urn:ngsi-ld:null'
const name = fc.constantFrom('a', 'b', 'c', 'http://x.org/d', 'constructor')
const datasetId = fc.constantFrom(undefined, 'urn:d:1', 'urn:d:2')
const json = fc.jsonValue({ maxDepth: 3 }).filter((value) => value !== null) as fc.Arbitrary<Json>
const observedAt = fc
  .date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString())

const plain = fc.record(
  { value: json, observedAt, unitCode: fc.constantFrom('CEL', 'P1'), note: fc.integer() },
  { requiredKeys: ['value'] },
)
const instance = fc.oneof(
  plain.map((members) => ({ type: 'Property', ...members })),
  fc.record({ type: fc.constant('Relationship'), object: fc.constantFrom('urn:t:1', 'urn:t:2') }),
  fc.record({
    type: fc.constant('LanguageProperty'),
    languageMap: fc.record({ en: fc.string(), de: fc.string() }),
  }),
  fc.record({
    type: fc.constant('GeoProperty'),
    value: fc.constant({ type: 'Point', coordinates: [8, 49] }),
  }),
)
const attribute = fc
  .uniqueArray(fc.tuple(instance, datasetId), { minLength: 1, maxLength: 3, selector: ([, id]) => id })
  .map((list) => list.map(([members, id]) => (id === undefined ? members : { ...members, datasetId: id })))

const attributes = fc.dictionary(name, attribute, { maxKeys: 4 })
const entity = attributes.map((members) =>
  deepFreeze(parseEntity({ id: 'urn:e', type: 'T', ...members }, coreContext)),
)
const fragment = fc
  .dictionary(name, attribute, { minKeys: 1, maxKeys: 4 })
  .map((members) => deepFreeze(parseFragment(members, coreContext)))

function deepFreeze<T>(value: T): T {
  for (const inner of Object.values(value as object)) {
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner)
  }
  return Object.freeze(value)
}

const writes: Readonly<Record<string, (before: Entity, given: Fragment) => Merged>> = {
  append: (before, given) => appendAttributes(before, given, { noOverwrite: false }),
  'append without overwriting': (before, given) => appendAttributes(before, given, { noOverwrite: true }),
  update: (before, given) => updateAttributes(before, given, { appendMissing: true }),
  'update of existing attributes': (before, given) =>
    updateAttributes(before, given, { appendMissing: false }),
  merge: mergeEntity,
}

describe.each(Object.entries(writes))('%s', (_, write) => {
  it('has no effect the second time', () => {
    fc.assert(
      fc.property(entity, fragment, (before, given) => {
        const once = write(before, given).entity
        expect(write(once, given).entity).toEqual(once)
      }),
    )
  })

  it('leaves everything else unchanged', () => {
    fc.assert(
      fc.property(entity, fragment, (before, given) => {
        const { entity: after } = write(before, given)
        for (const other of attributeNames(before).filter((one) => !Object.hasOwn(given, one))) {
          expect(after[other]).toBe(before[other])
        }
        for (const one of attributeNames(given)) {
          const touched = new Set(instancesOf(given, one).map((each) => each.datasetId))
          const others = (of: Entity) => instancesOf(of, one).filter((each) => !touched.has(each.datasetId))
          expect(others(after)).toEqual(others(before))
        }
      }),
    )
  })

  it('reports its effect: its changes turn the old entity into the new one', () => {
    fc.assert(
      fc.property(entity, fragment, (before, given) => {
        const { entity: after, changes, updated, notUpdated } = write(before, given)
        const differing = changesBetween(before, after).filter((change) => change.before !== change.after)
        const key = (change: { name: string; datasetId?: string | undefined }) =>
          `${change.name} ${change.datasetId}`
        const byKey = new Map(changes.map((change) => [key(change), change]))
        for (const change of differing) expect(byKey.get(key(change))).toEqual(change)
        expect(new Set([...updated, ...notUpdated.map((one) => one.attributeName)])).toEqual(
          new Set(attributeNames(given)),
        )
      }),
    )
  })
})

describe('opposites', () => {
  it('append of a new attribute, then its deletion, restores the entity', () => {
    fc.assert(
      fc.property(entity, fragment, (before, given) => {
        const fresh = attributeNames(given).filter((one) => !Object.hasOwn(before, one))
        fc.pre(fresh.length > 0)
        const body = Object.fromEntries(fresh.map((one) => [one, given[one]])) as Fragment
        let after = appendAttributes(before, body, { noOverwrite: false }).entity
        for (const one of fresh) after = deleteAttribute(after, one, { deleteAll: true }).entity
        expect(after).toEqual(before)
      }),
    )
  })

  it('replacement and reverse replacement restore the entity', () => {
    fc.assert(
      fc.property(entity, entity, (before, other) => {
        const there = replaceEntity(before, other)
        const back = replaceEntity(there.entity, before)
        expect(back.entity).toBe(before)
        expect(back.changes.length).toBe(there.changes.length)
      }),
    )
  })

  it('merging NGSI-LD Null deletes merged members', () => {
    fc.assert(
      fc.property(entity, fc.dictionary(name, plain, { minKeys: 1, maxKeys: 3 }), (before, members) => {
        fc.pre(Object.keys(members).every((one) => !Object.hasOwn(before, one)))
        const added = mergeEntity(before, parseFragment(members, coreContext)).entity
        const nulls = Object.fromEntries(Object.keys(members).map((one) => [one, nothing]))
        expect(mergeEntity(added, parseFragment(nulls, coreContext, { nulls: true })).entity).toEqual(before)
      }),
    )
  })
})

/** A literal transcription of RFC 7396, section 2, with NGSI-LD Null for null. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target)
  const result = new Map<string, unknown>(isObject ? Object.entries(target) : [])
  for (const [member, value] of Object.entries(patch)) {
    if (value === nothing) result.delete(member)
    else result.set(member, mergePatch(result.get(member), value))
  }
  return Object.fromEntries(result)
}

describe('merge', () => {
  const key = fc.constantFrom('x', 'y', 'z', '__proto__', 'constructor')
  const leaf = fc.oneof(
    fc.integer(),
    fc.boolean(),
    fc.constant('text'),
    fc.array(fc.integer(), { maxLength: 2 }),
  )
  const tree = (withNulls: boolean): fc.Arbitrary<Json> =>
    fc.letrec<{ node: Json }>((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        withNulls ? fc.oneof(leaf, fc.constant(nothing)) : leaf,
        fc.dictionary(key, tie('node'), { maxKeys: 3 }),
      ) as fc.Arbitrary<Json>,
    })).node
  const given = (value: Json, merging: boolean): Fragment =>
    parseFragment({ a: { type: 'Property', value } }, coreContext, { merging })

  it('merges values as RFC 7396 does', () => {
    let deleted = 0
    fc.assert(
      fc.property(tree(false), tree(true), (value, patch) => {
        const before = deepFreeze(parseEntity({ id: 'urn:e', type: 'T', a: { value } }, coreContext))
        const after = mergeEntity(before, deepFreeze(given(patch, true))).entity['a']
        if (patch === nothing) {
          deleted++
          expect(after).toBeUndefined()
        } else expect((after as AttributeInstance).value).toEqual(mergePatch(value, patch))
      }),
      { numRuns: 1000 },
    )
    expect(deleted).toBeGreaterThan(5)
  })

  it('of fragments with different attributes gives the same result in either order', () => {
    fc.assert(
      fc.property(entity, fragment, fragment, (before, one, all) => {
        const rest = attributeNames(all).filter((each) => !Object.hasOwn(one, each))
        const other = Object.fromEntries(rest.map((each) => [each, all[each]])) as Fragment
        const there = mergeEntity(mergeEntity(before, one).entity, other).entity
        const back = mergeEntity(mergeEntity(before, other).entity, one).entity
        expect(there).toEqual(back)
      }),
    )
  })

  it('of an entity with itself changes nothing', () => {
    fc.assert(
      fc.property(entity, (before) => {
        const { id: _id, ...same } = before
        expect(mergeEntity(before, same as Fragment).entity).toEqual(before)
      }),
    )
  })
})

describe('reduction', () => {
  it('by drop and by keep removes complementary attributes', () => {
    fc.assert(
      fc.property(entity, fc.uniqueArray(name), (before, names) => {
        const chosen = new Set<string>(names)
        const kept = reduceEntity(before, { keep: chosen }).entity
        const dropped = reduceEntity(before, { drop: chosen }).entity
        for (const one of attributeNames(before)) {
          const whole = instancesOf(before, one)
          expect(instancesOf(kept, one)).toEqual(chosen.has(one) ? whole : [])
          expect(instancesOf(dropped, one)).toEqual(chosen.has(one) ? [] : whole)
        }
      }),
    )
  })
})

describe('representations', () => {
  it('normalized and concise parse back to the same entity', () => {
    fc.assert(
      fc.property(entity, fc.constantFrom('normalized' as const, 'concise' as const), (before, format) => {
        const shown: unknown = JSON.parse(
          JSON.stringify(renderEntity(before, undefined, { context: coreContext, format })),
        )
        expect(parseEntity(shown, coreContext)).toEqual(JSON.parse(JSON.stringify(before)))
      }),
      { numRuns: 500 },
    )
  })
})

describe('observations', () => {
  const fresh = fc.record({ value: json, observedAt }, { requiredKeys: ['value'] })
  const otherwise = fc.constantFrom({}, {}, { unitCode: 'X' }, { note: 1 }, { type: 'GeoProperty' })

  it('are the changes that shape, value and time describe completely', () => {
    let found = 0
    fc.assert(
      fc.property(plain, fresh, otherwise, (first, second, more) => {
        const before = instanceOf({ ...first, type: 'Property' })
        const after = {
          ...before,
          ...instanceOf({ ...second, type: 'Property' }),
          ...more,
        } as AttributeInstance
        const observation = observationOf({ name: 'a', before, after })
        const sameShape = shapeOf(before) === shapeOf(after)
        expect(observation !== undefined).toBe(sameShape && after.observedAt !== undefined)
        if (observation === undefined) return
        found++
        expect(fromShape(shapeOf(before), observation.value, observation.observedAtMs)).toEqual(after)
      }),
      { numRuns: 300 },
    )
    expect(found).toBeGreaterThan(50)
  })
})

const instanceOf = (members: Record<string, Json>): AttributeInstance =>
  parseAttribute(members, 'a', coreContext) as AttributeInstance
