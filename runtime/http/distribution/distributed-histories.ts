/**
 * Histories that others have a part in (GS CIM 009, 5.7.3 and 5.7.4): the sources that offer temporal operations are asked
 * for the same time, and the route runs on what they and this gateway tell together.
 */
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import { gatherHistories, type HistoryQuestion } from '#federation/histories.ts'
import {
  asksForAll,
  attrsWanted,
  datasetsWanted,
  questionOf,
  questionOfBody,
} from '#http/entities/forwarded-query.ts'
import { readQueryBody } from '#http/entities/query-body.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import {
  anyParameter,
  type Distributed,
  filtered,
  mappedQuestion,
  mappedSources,
  runOn,
  warned,
} from '#http/request/distributed-request.ts'
import { type Parameters, wholeNumber } from '#http/request/negotiate.ts'
import type { AskHead } from '#http/request/request.ts'
import { parseTemporalSelection, temporalMembers } from '#ngsi-ld/history/temporal-query.ts'
import { parseTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { checkUri } from '#ngsi-ld/values/names.ts'
import type { DistributedWritePorts } from './distributed-writes.ts'

type Route = (c: HttpContext) => Response | Promise<Response>

export interface DistributedHistoryPorts extends DistributedWritePorts {
  readonly contexts: Contexts
  /** What splitEntities is where a request does not say it. */
  readonly splits?: boolean | undefined
}

export function createDistributedHistories({
  asks,
  bodies,
  contexts,
  problems,
  sources,
  splits,
}: DistributedHistoryPorts) {
  const ports = { sources, resolve: contexts.resolve }

  async function tell(
    { c, broker, asker, registrations }: Distributed,
    { context }: Pick<AskHead, 'context'>,
    { question, one, local }: { question: HistoryQuestion; one?: string; local: Route },
  ): Promise<Response> {
    const link = headerOf(c, 'link')
    const headers = { accept: 'application/json', ...(link === undefined ? {} : { link }) }
    const { map } = c.env
    const from = mappedSources(registrations, map)
    const read = { asker, broker, registrations: from, context, headers, mapWish: map?.wish }
    const asked = mappedQuestion({ ...question, splits: question.splits ?? splits }, map)
    const gathered = await gatherHistories(ports, read, asked, one)
    const at = map?.through(gathered.broker, gathered) ?? gathered.broker
    return warned(await runOn(problems, c, at, local), gathered.warnings)
  }

  return Object.freeze({
    /** What sources and this gateway have together for a Query. */
    gather({ c, broker, asker, registrations }: Distributed, ask: AskHead, query: JsonObject) {
      const link = headerOf(c, 'link')
      const headers = { accept: 'application/json', ...(link === undefined ? {} : { link }) }
      const { parameters } = readQueryBody(query, ask.context.expand, { temporal: true })
      const question = { ...questionOfBody(query, ask), ...timeOf(parameters) }
      const read = { asker, broker, registrations, context: ask.context, headers }
      return gatherHistories(ports, read, { ...question, splits: question.splits ?? splits })
    },

    async retrieve(request: Distributed, local: Route): Promise<Response> {
      const { c } = request
      const id = checkUri(c.req.param('id'), 'id')
      const ask = await asks.read(c, anyParameter)
      const type = ask.parameters.get('type')
      const types = type === undefined ? undefined : parseTypeSelection(type, ask.context.expand)
      const interests = [{ ids: [id], types, attrs: attrsWanted(ask) }]
      const datasets = datasetsWanted(ask.parameters.get('datasetId'))
      const question = { interests, parameters: { id }, datasets, looksAt: [], ...timeOf(ask.parameters) }
      return tell(request, ask, { question, one: id, local })
    },

    async query(request: Distributed, local: Route): Promise<Response> {
      const ask = await asks.read(request.c, anyParameter)
      const question = { ...questionOf(Object.fromEntries(ask.parameters), ask), ...timeOf(ask.parameters) }
      const concerned = filtered(request, ask.parameters.get('csf'), ask.context)
      return tell(concerned, ask, { question, local })
    },

    async queryByBody(request: Distributed, local: Route): Promise<Response> {
      const { c } = request
      c.env = { ...c.env, body: await bodies.raw(c) }
      const ask = await asks.body(c, { known: anyParameter })
      if (!isObject(ask.body) || asksForAll(ask.body)) return local(c)
      const { parameters } = readQueryBody(ask.body, ask.context.expand, { temporal: true })
      const question = { ...questionOfBody(ask.body, ask), ...timeOf(parameters) }
      const concerned = filtered(request, parameters.get('csf'), ask.context)
      return tell(concerned, ask, { question, local })
    },
  })
}

/** The window that is asked for. The route says what is wrong with it. */
function timeOf(parameters: Parameters): Pick<HistoryQuestion, 'times' | 'query'> {
  const times = Object.fromEntries([...parameters].filter(([name]) => temporalMembers.has(name)))
  const lastN = wholeNumber(parameters, 'lastN')
  return { times, query: { ...parseTemporalSelection(times), lastN, limit: Number.MAX_SAFE_INTEGER } }
}
