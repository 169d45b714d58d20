/**
 * Answers queries and single-entity requests; `index-routes.ts` serializes the result. Responses name who
 * answered (`Selvedge-Answered-By`) and the log position that the index includes (`Selvedge-Index-Position`).
 * A request with a position waits until the index includes it. Link headers are neither sent nor read.
 */

import { qualitiesOf } from '#base/load/media-range.ts'
import type { BrokerPort, ChangesPort, HostBase, ListAnswer, WrittenAnswer } from '#contract'
import { contextMember, coreContext } from '#ngsi-ld/context/context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { Parameters } from '#ngsi-ld/query/url-parameters.ts'
import { renderEntity } from '#ngsi-ld/representation/representation.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { fittingWarnings } from '#ngsi-ld/values/warning-lines.ts'
import { readingBareNames } from '#plugins/indexing/entries/bare-names.ts'
import type { Catalogue } from '#plugins/indexing/entries/catalogue.ts'
import {
  derivedName,
  isDerivedWanted,
  textWithDerived,
  withDerived,
} from '#plugins/indexing/entries/deduced.ts'
import { searchable } from '#plugins/indexing/entries/entity-kinds.ts'
import { type Forwarded, requestAll, retrieveFromFirst, warningOf, writtenOut } from './forwarding.ts'
import { checkForwarded, type IndexProjection, type Known, parseRequest } from './index-query.ts'
import type { Selecting } from './selecting.ts'

export interface AnsweringPorts extends Pick<HostBase<unknown>, 'context'> {
  readonly catalogue: Catalogue
  readonly selecting: Selecting
  /** The gateway's own broker in the index. */
  readonly own: {
    /** Log number up to which all changes are in the index; undefined during a full read. */
    position(): number | undefined
    /** Number of changes that the index lacks. */
    behind(): number
    /** Whether the index includes a log number; waits a short time for it. */
    reaches(n: number): Promise<boolean>
  }
  readonly changes: Pick<ChangesPort, 'position'>
  readonly broker: BrokerPort
  /** All brokers that requests can be forwarded to, the gateway's own first. */
  readonly reachable: () => readonly BrokerPort[]
  /** Warnings about brokers whose entries are stale. */
  readonly staleWarnings: () => readonly string[]
  /** Warnings about brokers whose last-seen times are not current. */
  readonly seenWarnings: () => readonly string[]
}

/** The client of a request. */
export interface IndexRequester {
  readonly headers: Pick<Headers, 'get' | 'has'>
  readonly signal: AbortSignal
}

/** A response: the text that a broker sent, or items not yet serialized. */
export type IndexReply = WrittenAnswer | ListAnswer

export const entitiesPath = '/ngsi-ld/v1/entities'
const positionHeader = 'Selvedge-Index-Position'

export function createAnswering(ports: AnsweringPorts) {
  const { own, catalogue, broker } = ports

  const known: Known = {
    isName: (name) => catalogue.nameOf(name) !== undefined,
    hasBare: catalogue.hasBare,
  }
  const expand = () => readingBareNames(ports.context(), known.isName)

  /** @param by who answered. */
  function headersOf(by: string, warnings: readonly string[]): Record<string, string> {
    const position = own.position()
    return {
      'selvedge-answered-by': by,
      ...(position !== undefined && { [positionHeader.toLowerCase()]: String(position) }),
      ...(warnings.length > 0 && { 'ngsild-warning': fittingWarnings(warnings).join(', ') }),
    }
  }

  const forwarded = (answer: Forwarded, warnings: readonly string[]): IndexReply => ({
    status: answer.status,
    headers: {
      ...headersOf(answer.by.join(', '), [...warnings, ...answer.warnings]),
      'content-type': answer.type,
      ...(answer.count !== undefined && { 'ngsild-results-count': answer.count }),
    },
    text: answer.text,
  })

  /** Waits until the index includes the position that the client sent. Returns warnings for the response. */
  async function warningsOf({ headers }: IndexRequester): Promise<string[]> {
    const warnings: string[] = [...ports.staleWarnings()]
    if (headers.has('link')) warnings.push(warningOf('the index does not read Link headers'))
    const wanted = headers.get(positionHeader)
    if (wanted !== null) {
      if (wanted !== 'latest' && !/^\d{1,15}$/.test(wanted))
        throw badRequestData('must be a log number or latest', positionHeader)
      const n = wanted === 'latest' ? ports.changes.position() : Number(wanted)
      if (!(await own.reaches(n))) warnings.push(warningOf(`the index does not include ${n} yet`))
    }
    if (own.position() === undefined) warnings.push(warningOf('the index is being built and lacks entities'))
    const behind = own.behind()
    if (behind > 0) warnings.push(warningOf(`the index is ${behind} changes behind and may lack entities`))
    return warnings
  }

  /**
   * Brokers for a forwarded request: only the own broker if another tenant or local entities are requested.
   */
  const brokersFor = (requester: IndexRequester, parameters: Parameters): readonly BrokerPort[] =>
    isForeign(requester) || parameters.get('local') === 'true' ? [broker] : ports.reachable()

  return Object.freeze({
    /** @throws GatewayError for an invalid query, or if no broker answers a forwarded one. */
    async query(requester: IndexRequester, parameters: Parameters): Promise<IndexReply> {
      const accept = acceptOf(requester)
      // Wait first: the latest changes may add names that the query uses.
      const warnings = await warningsOf(requester)
      const parsed = parseRequest(parameters, ports.context(), known)
      const { deduce } = ports.selecting
      const how = isDerivedWanted(requester.headers) ? { deduce, format: parsed.shown.format } : undefined
      const foreign = isForeign(requester)
      const { window, isLocal } = parsed.criteria
      if ((how !== undefined || window !== undefined) && !foreign && !isLocal)
        warnings.push(...ports.seenWarnings())
      if (foreign) checkForwarded(parameters, parsed.criteria, 'entities of another tenant')
      if (accept === undefined)
        checkForwarded(parameters, parsed.criteria, 'only a broker has this media type')
      if (foreign || parsed.forward !== undefined || accept === undefined) {
        const answer = await requestAll(brokersFor(requester, parameters), {
          parameters: writtenOut(parameters, parsed.criteria, expand()),
          paging: parsed.paging,
          headers: passedOn(requester),
          signal: requester.signal,
        })
        if (foreign || how === undefined || answer.status !== 200) return forwarded(answer, warnings)
        return forwarded({ ...answer, text: await textWithDerived(answer.text, how) }, warnings)
      }
      // The derived member is not an attribute: a query for it also matches entities without the other
      // attributes.
      const isAny = how !== undefined && parsed.criteria.attrs?.includes(derivedName) === true
      const criteria = isAny ? { ...parsed.criteria, attrs: undefined } : parsed.criteria
      const { entities, count, bytes } = await ports.selecting.select(
        criteria,
        parsed.paging,
        requester.signal,
      )
      const plain = entities.map((entity) => rendered(entity, parsed.shown, accept))
      const ids = entities.map(({ id }) => id)
      const shown = how === undefined ? plain : await withDerived(plain, ids, how)
      return {
        headers: {
          ...headersOf('index', warnings),
          'content-type': accept,
          ...(count !== undefined && { 'ngsild-results-count': String(count) }),
        },
        items: shown.filter(hasMembers),
        bytes,
      }
    },

    /** Retrieves one entity by id. @throws GatewayError as `query`. */
    async retrieve(requester: IndexRequester, id: string, parameters: Parameters): Promise<IndexReply> {
      const accept = acceptOf(requester)
      const warnings = await warningsOf(requester)
      const { shown, forward, criteria } = parseRequest(
        new Map([...parameters, ['id', id]]),
        ports.context(),
        known,
      )
      const { deduce } = ports.selecting
      const how = isDerivedWanted(requester.headers) ? { deduce, format: shown.format } : undefined
      const entry = catalogue.entity(id)
      const paging = ['limit', 'offset', 'count'].find((name) => parameters.has(name))
      if (paging !== undefined) throw invalidRequest(`${paging} is not allowed for a single entity`)
      const isPlain = [...parameters.keys()].every(
        (name) => name === 'pick' || name === 'omit' || name === 'options' || name === 'format',
      )
      const isHere = isPlain && entry !== undefined && (entry.kinds & searchable) !== 0
      if (isHere && forward === undefined && accept !== undefined && !isForeign(requester)) {
        const headers = { ...headersOf('index', warnings), 'content-type': accept }
        const plain = rendered(JSON.parse(entry.doc) as Entity, shown, accept)
        const [one] = how === undefined ? [plain] : await withDerived([plain], [id], how)
        return { status: 200, headers, text: JSON.stringify(one) }
      }
      const written = writtenOut(parameters, criteria, expand()).toString()
      const path = `${entitiesPath}/${encodeURIComponent(id)}${written === '' ? '' : `?${written}`}`
      const answer = await retrieveFromFirst(brokersFor(requester, parameters), path, {
        headers: passedOn(requester),
        signal: requester.signal,
      })
      if (isForeign(requester) || how === undefined || answer.status !== 200)
        return forwarded(answer, warnings)
      return forwarded({ ...answer, text: await textWithDerived(answer.text, how) }, warnings)
    },
  })
}

const hasMembers = (one: JsonObject): boolean => Object.keys(one).some((name) => name !== '@context')

/** Whether the request is for a tenant that is not indexed; the gateway's own broker answers it. */
const isForeign = ({ headers }: IndexRequester): boolean =>
  !['', 'default', null].includes(headers.get('ngsild-tenant'))

/** Media types of the index, and one that only brokers offer. */
const offered = ['application/json', 'application/ld+json', 'application/geo+json'] as const

/** The media type of the response; undefined if only a broker can provide it, or must refuse it. */
function acceptOf({ headers }: IndexRequester): 'application/json' | 'application/ld+json' | undefined {
  const qualities = qualitiesOf(headers.get('accept') || '*/*', offered)
  const best = Math.max(...qualities)
  const type = best === 0 ? undefined : offered[qualities.indexOf(best)]
  return type === 'application/geo+json' ? undefined : type
}

/**
 * Headers that are forwarded. A client's credentials are for this gateway and are never sent to another
 * broker. A tenant is one of this gateway, so only its own broker receives the header.
 */
function passedOn(requester: IndexRequester): Record<string, string> {
  const accept = requester.headers.get('accept')
  const tenant = isForeign(requester) ? requester.headers.get('ngsild-tenant') : null
  return { ...(accept !== null && { Accept: accept }), ...(tenant !== null && { 'NGSILD-Tenant': tenant }) }
}

function rendered(entity: Entity, shown: IndexProjection, type: string): JsonObject {
  return renderEntity(entity, undefined, {
    ...shown,
    context: coreContext,
    atContext: type === 'application/ld+json' ? contextMember(coreContext) : undefined,
  })
}
