/**
 * Runs the queries of a snapshot (NGSI-LD 1.9, 5.16.1): entities and histories of this gateway at the time of
 * the request, and of context sources. A query that failed or is incomplete has that result status.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield, type YieldIfDue } from '#base/load/yielding.ts'
import { isGatewayError } from '#base/register/errors.ts'
import type { EntityHistory } from '#broker/history/temporal-requests.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { QueryOutcome, SnapshotContent } from '#broker/tenant/snapshot-files.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { Json } from '#contract'
import type { Warning } from '#federation/sources.ts'
import { entityQueryOf } from '#http/entities/entity-search.ts'
import { readQueryBody } from '#http/entities/query-body.ts'
import { historyOptionsOf } from '#http/history/temporal-parameters.ts'
import type { HttpContext } from '#http/request/body.ts'
import type { Problems } from '#http/request/error-response.ts'
import type { RequestHead } from '#http/request/request.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { parseTemporalEntity, type TemporalEntity } from '#ngsi-ld/history/temporal-entity.ts'
import { renderEvolution } from '#ngsi-ld/history/temporal-query.ts'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { type Problem, tooManyResults } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** The merged data of this gateway and its sources. */
export interface GatheredForQuery {
  readonly broker: TenantBroker
  readonly warnings: readonly Warning[]
  /**
   * To be called after the query: adds entity parts that the sources did not report; undefined if nothing is
   * missing.
   */
  completed?(): Promise<GatheredForQuery | undefined>
}

/** Queries context sources; undefined if no source takes part. */
export interface SnapshotSources {
  entities(c: HttpContext, request: RequestHead, query: JsonObject): Promise<GatheredForQuery> | undefined
  histories(c: HttpContext, request: RequestHead, query: JsonObject): Promise<GatheredForQuery> | undefined
}

export interface SnapshotQueryPorts {
  readonly sources: SnapshotSources
  readonly problems: Problems
  /** The context of stored histories. */
  readonly core: Context
}

export interface SnapshotRequest {
  readonly head: RequestHead
  readonly broker: TenantBroker
  readonly queries: readonly Json[]
  readonly temporalQueries: readonly Json[]
}

interface Finding {
  readonly outcome: QueryOutcome
  readonly count: number
}

/**
 * Parses all queries, so that an invalid one is refused at once, and reads the local results. The returned
 * function adds the results of sources.
 *
 * @throws ngsi-ld.bad-request-data, ngsi-ld.too-many-results
 */
export async function findAll(
  { sources, problems, core }: SnapshotQueryPorts,
  c: HttpContext,
  { head, broker, queries, temporalQueries }: SnapshotRequest,
): Promise<() => Promise<SnapshotContent>> {
  const found = createCollection(core)
  const searches = queries.map((query) => ({ query, search: entitySearch(head, broker, query) }))
  const times = temporalQueries.map((query) => ({ ...historySearch(head, broker, query), gathering: query }))
  const here: Finding[] = []
  for (const { search } of searches) here.push(await found.takeEntities(broker, search))
  const past: Finding[] = []
  for (const one of times) past.push(await found.takeHistories(broker, one))

  const widened = async (
    gathering: Promise<GatheredForQuery> | undefined,
    own: Finding,
    take: (at: TenantBroker) => Finding | Promise<Finding>,
  ): Promise<QueryOutcome> => {
    try {
      const gathered = await gathering
      if (gathered === undefined) return own.outcome
      const first = await take(gathered.broker)
      const whole = await gathered.completed?.()
      const { count, outcome } = whole === undefined ? first : await take(whole.broker)
      return outcome.resultStatus === 'partial' ? outcome : outcomeOf(count, (whole ?? gathered).warnings)
    } catch (error) {
      if (!isGatewayError(error)) throw error
      return { resultStatus: own.count > 0 ? 'partial' : 'failure', problemDetails: [problems.body(error)] }
    }
  }
  return async () => {
    const details: QueryOutcome[] = []
    for (const [i, { query, search }] of searches.entries()) {
      const gathering = isObject(query) ? sources.entities(c, head, query) : undefined
      details.push(await widened(gathering, here[i]!, (at) => found.takeEntities(at, search)))
    }
    const temporalDetails: QueryOutcome[] = []
    for (const [i, one] of times.entries()) {
      const gathering = isObject(one.gathering) ? sources.histories(c, head, one.gathering) : undefined
      temporalDetails.push(await widened(gathering, past[i]!, (at) => found.takeHistories(at, one)))
    }
    return {
      status: statusOf([...details, ...temporalDetails]),
      details: details.length === 0 ? undefined : details,
      temporalDetails: temporalDetails.length === 0 ? undefined : temporalDetails,
      ...found.all(),
    }
  }
}

/** A history as stored in a snapshot, and its size. */
interface Kept {
  readonly history: TemporalEntity
  readonly instances: number
  readonly bytes: number
}

/** Collects entities and histories, each once in the version found last, up to the limits of a snapshot. */
function createCollection(core: Context) {
  const yieldIfDue = createYield(() => performance.now(), limits.queryTurnMs.value)
  const entities = new Map<string, { readonly view: EntityView; readonly bytes: number }>()
  const histories = new Map<string, Kept>()
  let instances = 0
  let bytes = 0
  const checkSize = (): void => {
    if (Math.max(entities.size, histories.size) > limits.snapshotEntitiesMax.value)
      throw tooManyResults(`a snapshot holds at most ${limits.snapshotEntitiesMax.value} entities`)
    if (instances > limits.snapshotInstancesMax.value)
      throw tooManyResults(
        `a snapshot holds at most ${limits.snapshotInstancesMax.value} instances of histories`,
      )
    if (bytes > limits.snapshotBytesMax.value)
      throw tooManyResults(`a snapshot holds at most ${limits.snapshotBytesMax.value} bytes`)
  }
  return {
    all: () => ({
      entities: [...entities.values()].map(({ view }) => view),
      histories: [...histories.values()].map(({ history }) => history),
    }),
    async takeEntities(at: TenantBroker, search: EntityQuery): Promise<Finding> {
      let count = 0
      for await (const view of pagesOf(at, search)) {
        const size = view.text().length
        bytes += size - (entities.get(view.id)?.bytes ?? 0)
        entities.set(view.id, { view, bytes: size })
        count++
        checkSize()
      }
      return { count, outcome: outcomeOf(count, []) }
    },
    async takeHistories(
      at: TenantBroker,
      { search, query }: ReturnType<typeof historySearch>,
    ): Promise<Finding> {
      let count = 0
      let isCut = false
      for (let more = true; more; ) {
        const page = await at.temporal.search(
          { ...search, limit: historiesPerRead, offset: count, count: false },
          query,
        )
        for (const found of page.found) {
          const kept = await keptOf(found, core, yieldIfDue)
          const before = histories.get(found.id)
          instances += kept.instances - (before?.instances ?? 0)
          bytes += kept.bytes - (before?.bytes ?? 0)
          histories.set(found.id, kept)
          if (found.cut.size > 0) isCut = true
          count++
          checkSize()
        }
        ;({ more } = page)
      }
      const outcome = isCut
        ? ({ resultStatus: 'partial', problemDetails: [cutProblem] } as const)
        : outcomeOf(count, [])
      return { count, outcome }
    },
  }
}

const historiesPerRead = 100

function entitySearch(head: RequestHead, broker: TenantBroker, query: Json): EntityQuery {
  const { parameters, entities } = readQueryBody(query, head.context.expand)
  return entityQueryOf({ ...head, broker, type: 'application/json', parameters }, undefined, entities)
}

function historySearch(head: RequestHead, broker: TenantBroker, query: Json) {
  const { parameters, entities } = readQueryBody(query, head.context.expand, { temporal: true })
  const request = { ...head, broker, type: 'application/json' as const, parameters }
  const options = historyOptionsOf(parameters, head.context, limits.temporalInstancesMax.value)
  return { search: entityQueryOf(request, options.attrs, entities), query: options.query }
}

async function* pagesOf(broker: TenantBroker, search: EntityQuery): AsyncIterable<EntityView> {
  let page: QueryPage | undefined
  let seen = 0
  do {
    const after: string | undefined = page?.next
    const offset = after === undefined ? seen : 0
    page = await broker.query({ ...search, limit: limits.pageMax.value, offset, after, count: false })
    seen += page.entities.length
    yield* page.entities
  } while (page.more)
}

/** Converts a history, with its times, into a form that can be stored. */
async function keptOf(found: EntityHistory, core: Context, yieldIfDue: YieldIfDue): Promise<Kept> {
  const options = { context: core, timeproperty: 'observedAt', sysAttrs: true, values: false } as const
  const json = renderEvolution(found, options)
  return {
    history: await parseTemporalEntity(json, core, { yieldIfDue, keepsTimes: true }),
    instances: [...found.attributes.values()].reduce((sum, { length }) => sum + length, 0),
    bytes: JSON.stringify(json).length,
  }
}

const cutProblem: Problem = {
  type: 'https://uri.etsi.org/ngsi-ld/errors/TooManyResults',
  title: 'Too many results',
  detail: `a snapshot holds at most ${limits.temporalInstancesMax.value} instances of each attribute`,
  status: 403,
}

function outcomeOf(count: number, warnings: readonly Warning[]): QueryOutcome {
  if (warnings.length === 0) return { resultStatus: count === 0 ? 'empty' : 'success' }
  const problemDetails = warnings.map(
    ({ text }): Problem => ({
      type: 'https://uri.etsi.org/ngsi-ld/errors/InternalError',
      title: 'A context source failed',
      detail: text,
      status: 502,
    }),
  )
  return { resultStatus: count === 0 ? 'failure' : 'partial', problemDetails }
}

/** The result status of all queries together. */
function statusOf(outcomes: readonly QueryOutcome[]): QueryOutcome['resultStatus'] {
  const statuses = new Set(outcomes.map(({ resultStatus }) => resultStatus))
  if (statuses.size === 1) return outcomes[0]!.resultStatus
  return statuses.has('failure') || statuses.has('partial') ? 'partial' : 'success'
}
