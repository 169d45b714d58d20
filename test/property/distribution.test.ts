/**
 * Merging copies of one entity: the result does not depend on the order in which sources respond, a repeated
 * copy changes nothing, and auxiliary sources never change the data of other sources.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { type EntityCopy, mergeCopies, splitWrite } from '#ngsi-ld/federation/distribution.ts'
import type { Registration, RegistrationMode } from '#ngsi-ld/federation/registration.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'

const names = ['flow', 'level', 'name'] as const

/** Copies whose instances all have different times, so that one is always the newest. */
const copies = (modes: readonly EntityCopy['mode'][]) =>
  fc
    .array(fc.subarray([...names], { minLength: 1 }), { minLength: 1, maxLength: 5 })
    .chain((having) =>
      fc.tuple(
        fc.constant(having),
        fc.uniqueArray(fc.integer({ min: 1, max: 10_000 }), {
          minLength: having.flat().length,
          maxLength: having.flat().length,
        }),
        fc.array(fc.constantFrom(...modes), { minLength: having.length, maxLength: having.length }),
      ),
    )
    .map(([having, times, chosen]) => {
      let next = 0
      return having.map((held, i): EntityCopy => {
        const attributes = held.map((name) => {
          const at = times[next++]!
          return [name, { type: 'Property', value: at, observedAt: msToDateTime(at * 1000) }]
        })
        const entity = { id: 'urn:e:1', type: 'T', ...Object.fromEntries(attributes) } as Entity
        return { mode: chosen[i]!, claim: 'all', entity, times: { created: 1, modified: 1, attributes: {} } }
      })
    })

const valuesOf = (entity: Entity) => names.map((name) => instancesOf(entity, name).map(({ value }) => value))

describe('the merged copies of one entity', () => {
  it('have the newest instance of each attribute, in any order of copies, repeated or not', () => {
    fc.assert(
      fc.property(copies(['local', 'inclusive']), (given) => {
        const merged = valuesOf(mergeCopies(given).entity)
        const newest = names.map((name) => {
          const all = given.flatMap(({ entity }) =>
            instancesOf(entity, name).map(({ value }) => value as number),
          )
          return all.length === 0 ? [] : [Math.max(...all)]
        })
        expect(merged).toEqual(newest)
        expect(valuesOf(mergeCopies(given.toReversed()).entity)).toEqual(newest)
        expect(valuesOf(mergeCopies([...given, ...given]).entity)).toEqual(newest)
      }),
    )
  })

  it('are not changed by auxiliary sources if other sources have the attribute', () => {
    fc.assert(
      fc.property(copies(['local', 'inclusive']), copies(['auxiliary']), (given, auxiliary) => {
        const without = valuesOf(mergeCopies(given).entity)
        const merged = valuesOf(mergeCopies([...auxiliary, ...given]).entity)
        for (const [i, values] of without.entries()) if (values.length > 0) expect(merged[i]).toEqual(values)
      }),
    )
  })
})

/** An attribute with instances of several datasets, each at its own time. */
const instances = fc
  .uniqueArray(fc.tuple(fc.constantFrom('', 'urn:d:1', 'urn:d:2'), fc.integer({ min: 1, max: 500 })), {
    selector: ([dataset]) => dataset,
    minLength: 1,
  })
  .map((list) =>
    list.map(([datasetId, at]) => ({
      type: 'Property',
      value: at,
      observedAt: msToDateTime(at * 1000),
      ...(datasetId === '' ? {} : { datasetId }),
    })),
  )
const copyOf = (
  mode: EntityCopy['mode'],
  flow: readonly { readonly value: number; readonly datasetId?: string }[],
): EntityCopy => ({
  mode,
  claim: new Set(['flow']),
  entity: { id: 'urn:e:1', type: 'T', flow: flow.length === 1 ? flow[0]! : flow } as unknown as Entity,
  times: { created: 1, modified: 1, attributes: {} },
})
const byDataset = (entity: Entity) =>
  Object.fromEntries(instancesOf(entity, 'flow').map(({ datasetId = '', value }) => [datasetId, value]))

describe('the merged instances of an attribute', () => {
  it('are the newest of each dataset, and those of a responsible source only its own', () => {
    fc.assert(
      fc.property(fc.array(instances, { minLength: 1, maxLength: 4 }), instances, (lists, own) => {
        const newest: Record<string, number> = {}
        for (const { datasetId = '', value } of lists.flat())
          newest[datasetId] = Math.max(newest[datasetId] ?? 0, value)
        const given = lists.map((list) => copyOf('inclusive', list))
        expect(byDataset(mergeCopies(given).entity)).toEqual(newest)
        const sole = copyOf('exclusive', own)
        expect(byDataset(mergeCopies([...given, sole]).entity)).toEqual(byDataset(sole.entity))
      }),
    )
  })

  it('include from auxiliary sources only otherwise missing datasets', () => {
    fc.assert(
      fc.property(instances, instances, (list, auxiliary) => {
        const merged = byDataset(
          mergeCopies([copyOf('auxiliary', auxiliary), copyOf('inclusive', list)]).entity,
        )
        const extra = byDataset(copyOf('auxiliary', auxiliary).entity)
        expect(merged).toEqual({ ...extra, ...byDataset(copyOf('inclusive', list).entity) })
      }),
    )
  })
})

/** Copies of an entity with one attribute; entity and attribute may each expire. */
const transient = fc.array(
  fc.record({
    ends: fc.option(fc.integer({ min: 1, max: 9 })),
    own: fc.option(fc.integer({ min: 1, max: 9 })),
  }),
  { minLength: 1, maxLength: 4 },
)
const hour = (n: number): string => msToDateTime(n * 3_600_000)

describe('the expiry of merged copies of an entity (4.5.5.2, 4.5.5.3)', () => {
  it('is never if one copy never expires, else the last; an attribute expires no later than its copy', () => {
    fc.assert(
      fc.property(transient, (all) => {
        const given = all.map(({ ends, own }, i): EntityCopy => {
          const attribute = { type: 'Property', value: i, ...(own === null ? {} : { expiresAt: hour(own) }) }
          const expiry = ends === null ? {} : { expiresAt: hour(ends) }
          const entity = { id: 'urn:e:1', type: 'T', ...expiry, [`a${i}`]: attribute } as Entity
          const times = { created: 1, modified: 1, attributes: {} }
          return { mode: i === 0 ? 'local' : 'inclusive', claim: 'all', entity, times }
        })
        const { entity } = mergeCopies(given)
        const ends = all.map((one) => one.ends)
        const last = ends.includes(null) ? undefined : hour(Math.max(...(ends as number[])))
        expect(entity.expiresAt).toBe(last)
        const isSame = ends.every((one) => one === ends[0])
        for (const [i, { ends: whole, own }] of all.entries()) {
          const limits = [own, isSame ? null : whole].filter((one) => one !== null)
          const [{ expiresAt } = {}] = instancesOf(entity, `a${i}`) as readonly { expiresAt?: string }[]
          expect(expiresAt).toBe(limits.length === 0 ? undefined : hour(Math.min(...limits)))
        }
      }),
    )
  })
})

describe('the split of a write', () => {
  it('sends every attribute to its responsible source or keeps it local, never both', () => {
    const registration = fc
      .tuple(
        fc.constantFrom<RegistrationMode>('inclusive', 'exclusive', 'redirect', 'auxiliary'),
        fc.subarray([...names], { minLength: 1 }),
      )
      .map(
        ([mode, propertyNames]): Registration => ({
          id: 'urn:r:1',
          mode,
          endpoint: 'http://source.example',
          operations: ['redirectionOps'],
          information: [{ entities: [{ types: ['T'] }], propertyNames }],
          context: [],
        }),
      )
    fc.assert(
      fc.property(
        fc.array(registration, { maxLength: 5 }),
        fc.subarray([...names], { minLength: 1 }),
        (all, wanted) => {
          const { parts, local } = splitWrite(all, {
            operation: 'appendAttrs',
            id: 'urn:e:1',
            types: ['T'],
            names: wanted,
          })
          const setOf = (some: 'all' | 'none' | ReadonlySet<string>) =>
            some === 'all' ? new Set<string>(wanted) : some === 'none' ? new Set<string>() : some
          const proxied = new Set(
            parts.filter((part) => part.isProxied).flatMap((part) => [...setOf(part.attributes)]),
          )
          const here = setOf(local)
          expect(new Set([...proxied, ...here])).toEqual(new Set(wanted))
          expect([...here].filter((name) => proxied.has(name))).toEqual([])
          expect(parts.some(({ registration: { mode } }) => mode === 'auxiliary')).toBe(false)
        },
      ),
    )
  })
})
