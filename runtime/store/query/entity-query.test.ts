/**
 * Queries over the real tables: each result is compared with the predicate, page by page. The plans are
 * checked as well: the driving condition, and that no table is scanned.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { parseTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { parseGeoQuery } from '#ngsi-ld/query/geo-query.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { compileSearch, type EntitySearch } from '#ngsi-ld/query/search.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'
import { createEntityTables } from '#test/kit/entity-tables.ts'
import { createWholeQuery, finished } from '#test/kit/whole-query.ts'
import { createEntityQuery } from './entity-query.ts'
import {
  armRowsStatement,
  choosePlan,
  chooseSets,
  countArmsStatement,
  type Plan,
  type PlanPorts,
  ridsStatement,
} from './query-plan.ts'
import { compileConditions } from './query-sql.ts'
import type { Sql } from './sql-text.ts'

const long = 'l'.repeat(300)

/** 400 entities: ten rooms, one in ten rare, temperatures 0 to 399, along the equator. */
const entities = Array.from(
  { length: 400 },
  (_, at): Entity => ({
    id: `urn:e:${at}`,
    type: at % 10 === 0 ? ['Sensor', 'Rare'] : 'Sensor',
    temperature: { type: 'Property', value: at, unitCode: 'CEL' },
    room: { type: 'Property', value: `room ${at % 10}` },
    note: { type: 'Property', value: at === 7 ? long : at === 8 ? `${long}!` : `note ${at}` },
    partOf: { type: 'Relationship', object: `urn:p:${at % 4}` },
    when: { type: 'Property', value: `2024-01-01T00:00:${String(at % 60).padStart(2, '0')}Z` },
    location:
      at % 7 === 0
        ? {
            type: 'GeoProperty',
            value: {
              type: 'LineString',
              coordinates: [
                [at / 100, 0],
                [at / 100, 0.01],
              ],
            },
          }
        : { type: 'GeoProperty', value: { type: 'Point', coordinates: [at / 100, 0] } },
  }),
)

const tables = createEntityTables()
const { database } = tables
const { nameOf } = tables.ports

beforeAll(() => tables.fill(entities))
afterAll(() => database.close())

const same = (term: string): string => term
const search = (parts: {
  type?: string
  q?: string
  near?: number
  within?: number
  attrs?: string[]
  ids?: string[]
  idPattern?: string
}): EntitySearch => ({
  ...(parts.type === undefined ? {} : { selection: parseTypeSelection(parts.type, same) }),
  ...(parts.q === undefined ? {} : { q: parseQuery(parts.q, same) }),
  ...(parts.near === undefined
    ? {}
    : {
        geo: parseGeoQuery(
          { georel: `near;maxDistance==${parts.near}`, geometry: 'Point', coordinates: [2, 0] },
          same,
        ),
      }),
  ...(parts.within === undefined
    ? {}
    : {
        geo: parseGeoQuery(
          {
            georel: 'within',
            geometry: 'Polygon',
            coordinates: [
              [
                [0, -1],
                [parts.within, -1],
                [parts.within, 1],
                [0, 1],
                [0, -1],
              ],
            ],
          },
          same,
        ),
      }),
  ...(parts.attrs === undefined ? {} : { attrs: parts.attrs }),
  ...(parts.ids === undefined ? {} : { ids: parts.ids }),
  ...(parts.idPattern === undefined ? {} : { idPattern: compilePattern(parts.idPattern) }),
})

const query = () => createWholeQuery(tables.ports)
/** Nothing counts as selective, so queries begin with a walk and end with sets. */
const walking = () =>
  createWholeQuery(tables.ports, { selectiveRowsMax: -1, walkedEntitiesMax: 20, ridsAtFirst: 8 })
const expected = (wanted: EntitySearch): string[] =>
  entities.filter((entity) => compileSearch(wanted)(entity)).map(({ id }) => id)

describe('an entity query', () => {
  it('queries a known list in slices and misses none between two slices', () => {
    const wanted = search({ type: 'Rare', q: 'temperature>=96;temperature<=350' })
    const { rows, more } = query().page(wanted, { limit: 10, offset: 0 })
    expect(rows.map(({ id }) => id)).toEqual(expected(wanted).slice(0, 10))
    expect(more).toBe(true)
  })

  it.each([
    [{ type: 'Rare' }, 40],
    [{ type: 'Sensor;Rare' }, 40],
    [{ type: 'Rare,Sensor' }, 400],
    [{ type: 'None' }, 0],
    [{ type: '*' }, 400],
    [{ q: 'temperature==10..19' }, 10],
    [{ q: 'temperature==10,20,"30"' }, 2],
    [{ q: 'temperature>=390|temperature<5' }, 15],
    [{ q: 'temperature!=5' }, 399],
    [{ q: 'temperature>100;room=="room 3"', type: 'Sensor' }, 30],
    [{ q: '(temperature>300;room=="room 3")|temperature==1' }, 11],
    [{ q: '!none' }, 400],
    [{ q: '!temperature' }, 0],
    [{ q: 'none==1' }, 0],
    [{ q: 'temperature.unitCode=="CEL";temperature<3' }, 3],
    [{ q: 'partOf==urn:p:1' }, 100],
    [{ q: 'partOf>"urn:p:0"' }, 0],
    [{ q: 'partOf!=urn:p:1' }, 300],
    [{ q: 'when>=2024-01-01T00:00:58Z' }, 12],
    [{ q: 'room~=^room [12]$' }, 80],
    [{ q: 'note~="^l{300}$"' }, 1],
    [{ near: 11_000 }, 19],
    [{ near: 11_000, type: 'Rare' }, 1],
    [{ within: 1 }, 101],
    [{ within: 1, q: 'temperature>50' }, 50],
    [{ attrs: ['none', 'room'] }, 400],
    [{ ids: ['urn:e:3', 'urn:e:1', 'urn:none'] }, 2],
    [{ ids: ['urn:e:3', 'urn:e:1'], q: 'temperature>1' }, 1],
    [{ idPattern: '^urn:e:39' }, 11],
    [{ idPattern: '9$', type: 'Sensor' }, 40],
    [{}, 400],
  ])('of %j finds %i', (parts, count) => {
    const wanted = search(parts)
    expect(expected(wanted)).toHaveLength(count)
    expect(query().count(wanted)).toBe(count)
    expect(
      query()
        .page(wanted, { limit: 1000, offset: 0 })
        .rows.map(({ id }) => id),
    ).toEqual(expected(wanted))
    expect(walking().count(wanted)).toBe(count)
    for (const offset of [0, 3, 15, 60]) {
      const walked = walking().page(wanted, { limit: 7, offset })
      expect(walked.rows.map(({ id }) => id)).toEqual(expected(wanted).slice(offset, offset + 7))
      expect(walked.more).toBe(count > offset + 7)
    }
    const page = query().page(wanted, { limit: 7, offset: 3 })
    expect(page.rows.map(({ id }) => id)).toEqual(expected(wanted).slice(3, 10))
    expect(page.more).toBe(count > 10)
    const rest = query().page(wanted, { limit: 5, offset: 0, after: 200 })
    expect(rest.rows.map(({ id }) => id)).toEqual(
      expected(wanted)
        .filter((id) => Number(id.slice(6)) >= 200)
        .slice(0, 5),
    )
  })

  it('distinguishes texts beyond their indexed beginning', () => {
    const count = (q: string): number => query().count(search({ q }))
    expect(count(`note=="${long}"`)).toBe(1)
    expect(count(`note!="${long}"`)).toBe(399)
    expect(count(`note=="${long.slice(0, 256)}"`)).toBe(0)
    expect(count(`note>"${long}"`)).toBe(399)
    expect(count(`note>="${long}!"`)).toBe(399)
    expect(count(`note>"l";note<="${long}"`)).toBe(1)
    expect(count(`note=="l".."${long}"`)).toBe(1)
  })

  it('finds texts that were cut within a character', () => {
    const other = createEntityTables()
    const notes = [`${'x'.repeat(255)}😀`, `${'x'.repeat(254)}😀y`, 'x'.repeat(256)]
    other.fill(
      notes.map((value, at) => ({ id: `urn:e:${at}`, type: 'T', note: { type: 'Property', value } })),
    )
    const find = (q: string): string[] =>
      createWholeQuery(other.ports)
        .page(search({ q }), { limit: 10, offset: 0 })
        .rows.map(({ id }) => id)
    expect(find(`note>"${'x'.repeat(256)}"`)).toEqual(['urn:e:0', 'urn:e:1'])
    expect(find(`note~="^${'x'.repeat(254)}😀y"`)).toEqual(['urn:e:1'])
    expect(find(`note=="${notes[0]}"`)).toEqual(['urn:e:0'])
    other.database.close()
  })

  it('prefers newer values to the index', () => {
    const away = { type: 'GeoProperty', value: { type: 'Point', coordinates: [100, 0] } }
    const moved: Entity = { ...entities[200]!, location: away, temperature: { type: 'Property', value: -1 } }
    const newer: Record<string, Json> = { location: away.value, temperature: -1 }
    const current = createWholeQuery({
      ...tables.ports,
      view: (row) => ({
        entity: () => (row.rid === 201 ? moved : entities[row.rid - 1]!),
        times: () => ({ created: 0, modified: 0, attributes: {} }),
      }),
      unwritten(name, { fits }) {
        const value = newer[name]
        return value === undefined ? undefined : { rids: fits(value) ? [201] : [], has: (rid) => rid === 201 }
      },
    })
    const find = (wanted: EntitySearch): string[] =>
      current.page(wanted, { limit: 10, offset: 0 }).rows.map(({ id }) => id)
    expect(find(search({ q: 'temperature==200' }))).toEqual([])
    expect(find(search({ q: 'temperature<0' }))).toEqual(['urn:e:200'])
    expect(find(search({ near: 100 }))).toEqual([])
    expect(current.count(search({ near: 1200 }))).toBe(2)
    expect(find(search({ q: 'room=="room 0";temperature<10' }))).toEqual(['urn:e:0', 'urn:e:200'])
  })

  it('yields while it refines places', () => {
    const steps = createEntityQuery(tables.ports).count(search({ within: 4 }))
    let rests = 0
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) rests++
    expect(step.value).toBe(expected(search({ within: 4 })).length)
    expect(rests).toBeGreaterThanOrEqual(Math.floor(step.value / 64))
  })

  it('does not cache a page when an entity was created during the search', () => {
    const { entities: documents } = tables.ports
    const asked = { limit: 397, offset: 0 }
    const steps = createEntityQuery(tables.ports).page(search({ type: 'Rare' }), asked)
    expect(steps.next().done).toBe(false)
    documents.pages.forget()
    finished(steps)
    expect(documents.pages.find(search({ type: 'Rare' }), { ...asked, after: 0 })).toBeUndefined()
  })

  it('finds nothing for a path through a missing relationship', () => {
    expect(query().page(search({ q: 'partOf{name}=="x"' }), { limit: 1, offset: 0 }).rows).toEqual([])
  })
})

describe('its statements', () => {
  const pluck = ({ text, params }: Sql): number =>
    database
      .prepare(text)
      .pluck()
      .get(...params) as number
  const ports = (selectiveRowsMax: number): PlanPorts => ({
    selectiveRowsMax,
    countRows: (arms, most) => pluck(countArmsStatement(arms, most)),
    *refineCondition(condition, most) {
      const rows = condition.arms!.flatMap((arm) => {
        const { text, params } = armRowsStatement([arm], most)
        return database
          .prepare(text)
          .raw()
          .all(...params) as [number, ...number[]][]
      })
      return { ...condition, rids: rows.map(([rid]) => rid), sure: new Set() }
    },
  })
  const explain = ({ text, params }: Sql): string =>
    (database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...params) as { detail: string }[])
      .map(({ detail }) => detail)
      .join('\n')
  const page = (plan: Plan): string =>
    explain(ridsStatement(plan, { after: 0, to: 1e6, limit: 20, offset: 0 }))

  it.each([
    [{ type: 'Rare' }],
    [{ type: 'Rare', q: 'temperature>100' }],
    [{ q: 'temperature==10..19', type: 'Sensor' }],
    [{ q: 'room=="room 3";temperature>100', type: 'Sensor' }],
    [{ q: 'room=="room 3"|temperature>390', type: 'Sensor' }],
    [{ q: 'room~=^room', type: 'Sensor', attrs: ['note', 'room'] }],
    [{ near: 11_000, type: 'Sensor' }],
    [{ ids: ['urn:e:1'], type: 'Sensor', q: 'temperature>3' }],
    [{ idPattern: '^urn:e:39', type: 'Sensor' }],
    [{ q: 'temperature>100;temperature<=110', type: 'Sensor' }],
    [{ q: '!none;temperature!=4', type: 'Rare' }],
  ])('never scan a table for %j', (parts) => {
    for (const selectiveRowsMax of [2000, 0]) {
      const conditions = compileConditions(search(parts), { nameOf })
      const plans = [
        finished(choosePlan(conditions, ports(selectiveRowsMax))),
        finished(chooseSets(conditions, ports(selectiveRowsMax))),
      ]
      for (const plan of plans)
        expect(page(plan)).not.toMatch(/SCAN (d|k|x|entity|scalar|entity_type|has_attribute)\b(?! VIRTUAL)/)
    }
  })

  it('use the selective condition to drive, and walk in rid order when there is none', () => {
    const conditions = compileConditions(search({ type: 'Sensor', q: 'temperature==10..19' }), { nameOf })
    expect(page(finished(choosePlan(conditions, ports(2000))))).toMatch(
      /^SEARCH d USING PRIMARY KEY \(name=\? AND kind=\? AND value>\? AND value<\?\)/,
    )
    const walked = page(finished(choosePlan(conditions, ports(0))))
    expect(walked).toMatch(/^SEARCH d USING PRIMARY KEY \(type=\? AND rid>\? AND rid<\?\)/)
    expect(walked).not.toMatch(/TEMP B-TREE/)
  })

  it('read two bounds on one attribute as one range', () => {
    const conditions = compileConditions(search({ q: 'temperature>100;note;temperature<=110' }), { nameOf })
    expect(conditions.flatMap(({ arms = [] }) => arms.map(({ where }) => where))).toEqual([
      'd.name = ? AND d.kind = ? AND d.value > ? AND d.value <= ?',
      'd.name = ? AND d.kind = ?',
      'd.name = ?',
    ])
  })

  it('merge ordered lists of several types without sorting them', () => {
    const conditions = compileConditions(search({ type: 'Sensor,Rare' }), { nameOf })
    expect(page(finished(choosePlan(conditions, ports(0))))).toMatch(/MERGE \(UNION\)/)
    expect(page(finished(choosePlan(conditions, ports(0))))).not.toMatch(/TEMP B-TREE/)
  })
})
