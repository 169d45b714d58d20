/**
 * Nested criteria of GraphQL find the same entities as a scan of all entities, for any entities and any
 * depth; the pages of a result form the whole result.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fieldEntities, idOf, platformOf, type SearchSite, startSearchSite } from '#test/kit/search-site.ts'

const devices = 12
const fields = ['Temperature', 'Humidity', 'Noise'] as const

interface Field {
  readonly device: number
  readonly label: string
  readonly value: number
  readonly rated: number
}

const all: readonly Field[] = Array.from({ length: devices }, (_, device) =>
  fields
    .filter((_field, at) => (device + at) % 4 !== 0)
    .map((field, at) => ({
      device,
      label: field.toLowerCase(),
      value: (device * 7 + at * 5) % 20,
      rated: ((device * 3 + at) % 10) / 10,
    })),
).flat()

let site: SearchSite

beforeAll(async () => {
  site = await startSearchSite()
  const nameOf = ({ label }: Field): string => fields.find((field) => field.toLowerCase() === label)!
  await site.create([
    ...Array.from({ length: devices }, (_, device) =>
      platformOf(`d${device}`, all.filter((one) => one.device === device).map(nameOf), [
        10 + device / 100,
        50,
      ]),
    ),
    ...all.flatMap((one) =>
      fieldEntities({
        device: `d${one.device}`,
        field: nameOf(one),
        value: one.value,
        completeness: one.rated,
      }),
    ),
  ])
})

afterAll(() => site.close())

// ---- Criteria in GraphQL, each with an equivalent predicate on a field

interface Criteria {
  readonly input: object
  holds(one: Field): boolean
}

const both = (some: readonly (Criteria & { readonly name: string })[]): Criteria => ({
  input: Object.fromEntries(some.map(({ name, input }) => [name, input])),
  holds: (one) => some.every(({ holds }) => holds(one)),
})

const figure: fc.Arbitrary<Criteria> = fc
  .record({ least: fc.integer({ min: -1, max: 20 }), most: fc.nat(20) })
  .map(({ least, most }) => ({
    input: { hasSimpleResult: { gte: least, lt: most } },
    holds: ({ value }) => value >= least && value < most,
  }))
const property: fc.Arbitrary<Criteria> = fc
  .subarray(['temperature', 'humidity', 'noise', 'nothing'], { minLength: 1 })
  .map((labels) => ({ input: { labelIn: labels }, holds: ({ label }) => labels.includes(label) }))
const rated: fc.Arbitrary<Criteria> = fc.nat(10).map((tenths) => ({
  input: { completeness: { rated: { gte: tenths / 10 } } },
  holds: (one) => one.rated >= tenths / 10,
}))

/** At least one of these. */
const someOf = (parts: Readonly<Record<string, fc.Arbitrary<Criteria>>>): fc.Arbitrary<Criteria> =>
  fc
    .subarray(Object.entries(parts), { minLength: 1 })
    .chain((chosen) =>
      fc.tuple(...chosen.map(([name, arbitrary]) => arbitrary.map((criteria) => ({ name, ...criteria })))),
    )
    .map(both)

/** A platform that hosts such a sensor, or has that label. */
const platform = (depth: number): fc.Arbitrary<Criteria> => {
  const named: fc.Arbitrary<Criteria> = fc.nat(devices).map((device) => ({
    input: { label: `platform d${device}` },
    holds: (one) => one.device === device,
  }))
  if (depth === 0) return named
  const hosting = sensor(depth - 1).map(
    ({ input, holds }): Criteria => ({
      input: { hosts: input },
      holds: ({ device }) => all.some((other) => other.device === device && holds(other)),
    }),
  )
  return fc.oneof(named, hosting)
}
const sensor = (depth: number): fc.Arbitrary<Criteria> =>
  someOf({ observes: property, madeObservation: figure, isHostedBy: platform(depth) })
const stream = (depth: number): fc.Arbitrary<Criteria> =>
  someOf({ generatedBy: sensor(depth), observes: property, observation: figure, quality: rated })

const idsOf = (kind: string, holds: Criteria['holds']): string[] =>
  all
    .filter(holds)
    .map(({ device, label }) =>
      idOf(
        kind,
        `d${device}`,
        fields.find((field) => field.toLowerCase() === label),
      ),
    )
    .toSorted()

const asked = async (
  name: string,
  input: string,
  filter: object,
  page = 'limit: 1000',
): Promise<string[]> => {
  const found = await site.data<Record<string, { id: string }[]>>(
    `query ($filter: ${input}) { ${name}(filter: $filter, ${page}) { id } }`,
    { filter },
  )
  return found[name]!.map(({ id }) => id)
}

it('finds the same sensors and streams as a full scan', async () => {
  await fc.assert(
    fc.asyncProperty(sensor(2), stream(2), async (sensors, streams) => {
      const [some, others] = await Promise.all([
        asked('sensors', 'SensorInput', sensors.input),
        asked('streams', 'IoTStreamInput', streams.input),
      ])
      expect(some.toSorted()).toEqual(idsOf('Sensor', sensors.holds))
      expect(others.toSorted()).toEqual(idsOf('IotStream', streams.holds))
    }),
    { numRuns: 80 },
  )
})

it('returns the same in pages', async () => {
  await fc.assert(
    fc.asyncProperty(stream(1), fc.integer({ min: 1, max: 9 }), async ({ input, holds }, size) => {
      const wanted = idsOf('IotStream', holds)
      const found: string[] = []
      for (let offset = 0; offset <= wanted.length; offset += size) {
        found.push(...(await asked('streams', 'IoTStreamInput', input, `offset: ${offset}, limit: ${size}`)))
      }
      expect(found.toSorted()).toEqual(wanted)
    }),
    { numRuns: 25 },
  )
})
