/**
 * Distributed retrieval and query of histories (GS CIM 009, 4.3.6, 5.7.3 and 5.7.4). Queries the sources that
 * may hold relevant data, in several parts if their answers are too long for one. Returns a broker that
 * answers from local and remote data. Conditions are evaluated on all values of the window, regardless of
 * their holder.
 */
import { limits } from '#base/limits/limits.ts'
import { windowOf } from '#broker/history/evolution-sources.ts'
import type {
  AggregateQuery,
  EntityAggregates,
  EntityHistory,
  TemporalBroker,
  TemporalPage,
  TemporalQuery,
} from '#broker/history/temporal-requests.ts'
import type { EntityQuery } from '#broker/state/entity-queries.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { instancesOf } from '#ngsi-ld/entity/entity.ts'
import { type HistoryCopy, mergeHistories, sumUp } from '#ngsi-ld/federation/history-merge.ts'
import { modeOf, type Registration } from '#ngsi-ld/federation/registration.ts'
import { claimOf, holdsDataset, holdsTime } from '#ngsi-ld/federation/registration-match.ts'
import { readEvolution } from '#ngsi-ld/history/temporal-answer.ts'
import { type TimedInstance, timeOf } from '#ngsi-ld/history/temporal-query.ts'
import { compileSearch } from '#ngsi-ld/query/search.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { entitiesOf, type ReaderPorts } from './entity-pages.ts'
import { linkedMaps, withKnownNames } from './reading.ts'
import { type ClientQuery, historyRequestFor, type ReadRequest } from './requests.ts'
import type { Warning } from './sources.ts'
import { invalidAnswer } from './warnings.ts'

/** A query about histories within a time window. */
export interface ClientHistoryQuery extends ClientQuery {
  /** Parameters of the window as received: timerel, timeAt, endTimeAt, timeproperty, lastN. */
  readonly times: Readonly<Record<string, string>>
  readonly query: TemporalQuery
}

export interface GatheredHistories {
  readonly broker: TenantBroker
  /** The source of each remote history. */
  readonly copies: readonly { readonly source: string; readonly entity: { readonly id: string } }[]
  /** Locations of the entity maps that sources created, by registration id. */
  readonly linked: ReadonlyMap<string, string>
  readonly warnings: readonly Warning[]
}

type CopiesById = ReadonlyMap<string, readonly HistoryCopy[]>

export async function gatherHistories(
  ports: ReaderPorts,
  read: ReadRequest,
  clientQuery: ClientHistoryQuery,
  one?: string,
): Promise<GatheredHistories> {
  /** Reads all histories of one source, part by part, up to a limit. */
  async function historiesOf(
    registration: Registration,
  ): Promise<{ source: string; copies: HistoryCopy[]; warnings: Warning[]; map: string | undefined }> {
    const { query } = clientQuery
    const isBackwards = query.lastN !== undefined
    const parts = new Map<string, HistoryCopy[]>()
    const warnings: Warning[] = []
    let times: ClientHistoryQuery['times'] | undefined = clientQuery.times
    let end: number | undefined
    let map: string | undefined
    let instances = 0
    while (times !== undefined) {
      const request = historyRequestFor(registration, { ...clientQuery, times }, one, read)
      if (request === undefined) break
      const answers = await entitiesOf(ports, read, registration, request)
      warnings.push(...answers.warnings)
      map ??= answers.map
      for (const json of answers.entities) {
        try {
          const copy = copyOf(registration, readEvolution(json, answers.context), query)
          if (copy === undefined) continue
          parts.set(copy.history.id, [...(parts.get(copy.history.id) ?? []), copy])
          for (const list of copy.history.attributes.values()) instances += list.length
        } catch (error) {
          warnings.push(invalidAnswer(registration, error))
        }
      }
      const before = end
      end = endOf(answers.ranges, isBackwards)
      // Stop at a source whose range does not advance; it would be queried forever.
      if (end === undefined || end === before || instances > limits.sourceInstancesMax.value) break
      times = timesFrom(clientQuery, end)
    }
    const selection = { ...query, limit: Number.MAX_SAFE_INTEGER }
    const copies = [...parts.values()].map((same) => ({
      ...same[0]!,
      history: same.length === 1 ? same[0]!.history : mergeHistories(same, selection),
      end,
    }))
    return { source: registration.id, copies, warnings, map }
  }

  const answers = await Promise.all(
    read.registrations.filter((registration) => holdsTime(registration, clientQuery.query)).map(historiesOf),
  )
  const byId = new Map<string, HistoryCopy[]>()
  for (const { copies } of answers)
    for (const copy of copies) byId.set(copy.history.id, [...(byId.get(copy.history.id) ?? []), copy])
  const broker = byId.size === 0 ? read.broker : overlay(read.broker, byId)
  return {
    broker,
    copies: answers.flatMap(({ source, copies }) =>
      copies.map(({ history: { id } }) => ({ source, entity: { id } })),
    ),
    linked: linkedMaps(answers),
    warnings: answers.flatMap(({ warnings }) => warnings),
  }
}

/** The part of a history that a source may report; undefined if none. */
function copyOf(
  registration: Registration,
  history: EntityHistory,
  query: TemporalQuery,
): HistoryCopy | undefined {
  const claim = claimOf(registration, history.id, listOf<string>(history.type))
  if (claim === undefined) return undefined
  const { from, to } = windowOf(query)
  const isIn = (one: TimedInstance): boolean => {
    const time = timeOf(one, query.timeproperty)
    // Without a temporal query a history has all instances, also those without the selected time.
    return time === undefined ? query.timerel === undefined : time >= from && time < to
  }
  const attributes = [...history.attributes].flatMap(([name, list]) => {
    if (claim !== 'all' && !claim.has(name)) return []
    const within = list.filter((one) => isIn(one) && holdsDataset(registration, one.instance))
    return within.length === 0 ? [] : [[name, within] as const]
  })
  return { mode: modeOf(registration), claim, history: { ...history, attributes: new Map(attributes) } }
}

/** The time up to which a source's data is complete; undefined if all of it is. */
function endOf(ranges: readonly string[], isBackwards: boolean): number | undefined {
  const ends = ranges.flatMap((range) => {
    const found = /^\s*date-?time\s+(\S+?Z)-(\S+?Z)\//i.exec(range)
    return found === null ? [] : (dateTimeToMs(found[2]!) ?? [])
  })
  if (ends.length === 0) return undefined
  return isBackwards ? Math.max(...ends) : Math.min(...ends)
}

/** The remaining window. Instances at its first moment are read twice and counted once. */
function timesFrom(
  { times, query }: ClientHistoryQuery,
  end: number,
): ClientHistoryQuery['times'] | undefined {
  const { from, to } = windowOf(query)
  const bounded = (start: number, stop: number) => ({
    ...times,
    timerel: 'between',
    timeAt: msToDateTime(start),
    endTimeAt: msToDateTime(stop),
  })
  if (query.lastN !== undefined) {
    const { endTimeAt: _, ...others } = times
    return Number.isSafeInteger(from) && query.timerel !== undefined && query.timerel !== 'before'
      ? bounded(from, end + 1)
      : { ...others, timerel: 'before', timeAt: msToDateTime(end + 1) }
  }
  if (query.timerel === 'before' || query.timerel === 'between') return bounded(end, to)
  return { ...times, timerel: 'after', timeAt: msToDateTime(end) }
}

/** Merges one entity's history and aggregates from local and remote data. */
function togetherOf(broker: TenantBroker, byId: CopiesById) {
  const merged = (id: string, query: TemporalQuery): EntityHistory | undefined => {
    const own = broker.history(id, query)
    const others = byId.get(id)
    if (others === undefined) return own
    const copies = others.map((copy) => ({ ...copy, history: shown(copy.history, query) }))
    const local: HistoryCopy[] = own === undefined ? [] : [{ mode: 'local', claim: 'all', history: own }]
    return mergeHistories([...local, ...copies], query)
  }
  const aggregate = async (id: string, query: AggregateQuery): Promise<EntityAggregates | undefined> => {
    const own = await broker.temporal.aggregate(id, query)
    const others = byId.get(id)
    if (others === undefined) return own
    const answers = new Set(others.flatMap(({ history }) => [...history.attributes.keys()]))
    const most = limits.sourceInstancesMax.value
    const names = new Set([...answers].filter((name) => query.attrs?.has(name) ?? true))
    const whole = merged(id, { ...query, attrs: names, limit: most })!
    if (whole.cut.size > 0)
      throw tooComplex(
        `${id} has more than ${most} values here and at its sources; choose a shorter time window`,
      )
    const sums = [...(own?.attributes ?? [])].filter(([name]) => !answers.has(name))
    return { id, type: whole.type, attributes: new Map([...sums, ...sumUp(whole, query)]) }
  }
  return { merged, aggregate }
}

/** Wraps a broker so that it also returns the histories of sources. */
function overlay(broker: TenantBroker, byId: CopiesById): TenantBroker {
  const { merged, aggregate } = togetherOf(broker, byId)

  /** Ids of the entities on a page. */
  async function page(search: EntityQuery, query: TemporalQuery): Promise<TemporalPage<string>> {
    const { limit, offset, count, order: _, after: _after, attrs: _attrs, ...what } = search
    const { attrs: _names, datasets: _datasets, lastN: _lastN, ...window } = query
    const past = (id: string): EntityHistory | undefined =>
      merged(id, { ...window, limit: limits.temporalFilterInstancesMax.value })
    const fits = compileSearch(what, (id) => {
      const whole = past(id)
      return whole === undefined ? undefined : { entity: () => pastOf(whole), times: () => timesOf(whole) }
    })
    const found = (id: string): boolean => {
      const whole = past(id)
      if (whole === undefined || !fits(pastOf(whole), timesOf(whole))) return false
      return shown(whole, query).attributes.size > 0
    }
    const first = await broker.temporal.search(
      { ...search, limit: offset + limit, offset: 0, count: true },
      { ...query, limit: 1 },
    )
    const held = first.found.filter(({ id }) => !byId.has(id) || found(id)).map(({ id }) => id)
    const seen = new Set(first.found.map(({ id }) => id))
    const isHere = async (id: string): Promise<boolean> => {
      if (!first.more) return false
      const one = { ...search, ids: [id], limit: 1, offset: 0, count: false }
      const here = await broker.temporal.search(one, { ...query, limit: 1 })
      return here.found.length > 0
    }
    const others: string[] = []
    for (const id of [...byId.keys()].sort())
      if (!seen.has(id) && found(id) && !(await isHere(id))) others.push(id)
    const all = first.more ? held : [...held, ...others]
    const total = (first.count ?? held.length) + others.length
    return {
      found: all.slice(offset, offset + limit),
      more: first.more || all.length > offset + limit,
      count: count ? total : undefined,
    }
  }

  const temporal: TemporalBroker = Object.freeze({
    ...broker.temporal,
    aggregate,
    async search(search, query) {
      const found = await page(search, query)
      return { ...found, found: found.found.flatMap((id) => reportable(merged(id, query))) }
    },
    async searchAggregates(search, query) {
      const found = await page(search, query)
      const sums: EntityAggregates[] = []
      for (const id of found.found) sums.push(...reportable(await aggregate(id, query)))
      return { ...found, found: sums }
    },
  } satisfies TemporalBroker)
  const copies = [...byId.values()].flat()
  const inventory = withKnownNames(broker.inventory, (name) =>
    copies.some(({ history }) => history.attributes.has(name) || listOf(history.type).includes(name)),
  )
  return Object.freeze({ ...broker, inventory, history: merged, temporal })
}

/** The history of an entity, unless it is empty. */
const reportable = <Found extends { readonly attributes: ReadonlyMap<string, unknown> }>(
  found: Found | undefined,
): readonly Found[] => (found === undefined || found.attributes.size === 0 ? [] : [found])

/** The attributes and instances that a query selects. */
function shown(history: HistoryCopy['history'], query: TemporalQuery): HistoryCopy['history'] {
  const { attrs, datasets, unobserved, timeproperty } = query
  const isTimed = (one: TimedInstance): boolean =>
    unobserved === true ? one.observedAt === undefined : timeOf(one, timeproperty) !== undefined
  const attributes = [...history.attributes].flatMap(([name, list]) => {
    if (attrs !== undefined && !attrs.has(name)) return []
    const wanted = list.filter(
      (one) => isTimed(one) && (datasets?.has(one.instance.datasetId ?? '@none') ?? true),
    )
    return wanted.length === 0 ? [] : [[name, wanted] as const]
  })
  return { ...history, attributes: new Map(attributes) }
}

/** The entity with every value of the window, and its values without a time. */
function pastOf({ entity, attributes }: EntityHistory) {
  const { id, type, scope } = entity
  const members: Record<string, AttributeInstance[]> = {}
  for (const [name, list] of attributes)
    if (name !== 'scope') members[name] = list.map(({ instance }) => instance)
  for (const name of Object.keys(entity)) {
    if (name === 'id' || name === 'type' || name === 'scope') continue
    const untimed = instancesOf(entity, name).filter(({ observedAt }) => observedAt === undefined)
    if (untimed.length > 0) members[name] = [...(members[name] ?? []), ...untimed]
  }
  return { id, type, ...(scope === undefined ? {} : { scope }), ...members }
}

const timesOf = ({ modified = 0, created = modified }: EntityHistory) => ({
  created,
  modified,
  attributes: {},
})
