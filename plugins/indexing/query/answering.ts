/**
 * Queries for entities and single entities, from a request to an answer that is not written out yet. Answers say who answered
 * (`Selvedge-Answered-By`) and what the index includes (`Selvedge-Index-Position`); a client that sends a position is answered when the
 * index includes it. There is no Link header in answers, and one in a request means nothing.
 */

import { qualitiesOf } from '#base/load/media-range.ts'
import type { BrokerPort, ChangesPort, HostBase, ListAnswer, WrittenAnswer } from '#contract'
import { contextMember, coreContext } from '#ngsi-ld/context/context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
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
import { askAll, askForOne, type Forwarded, warningOf, writtenOut } from './forwarding.ts'
import { checkForwarded, type Known, type Parameters, type Shown, wishOf } from './index-query.ts'
import type { Selecting } from './selecting.ts'

export interface AnsweringPorts extends Pick<HostBase<unknown>, 'context'> {
  readonly catalogue: Catalogue
  readonly selecting: Selecting
  /** The gateway's own broker in the index. */
  readonly own: {
    /** Log number up to which all is in the index; undefined while it is read. */
    position(): number | undefined
    /** How many changes the index lacks. */
    behind(): number
    /** Whether the index includes a log number, after a short wait for it. */
    reaches(n: number): Promise<boolean>
  }
  readonly changes: Pick<ChangesPort, 'position'>
  readonly mdr: BrokerPort
  /** All brokers that are asked, the gateway's own first. */
  readonly asked: () => readonly BrokerPort[]
  /** Warnings of brokers whose entries are aged. */
  readonly aged: () => readonly string[]
  /** Warnings of brokers of whom is not known as of now when streams were last seen. */
  readonly seenLast: () => readonly string[]
}

/** Who asks. */
export interface Asker {
  readonly headers: Pick<Headers, 'get' | 'has'>
  readonly signal: AbortSignal
}

/** An answer: as a broker wrote it, or not written out. */
export type Reply = WrittenAnswer | ListAnswer

export const entitiesPath = '/ngsi-ld/v1/entities'
const positionHeader = 'Selvedge-Index-Position'

export function createAnswering(ports: AnsweringPorts) {
  const { own, catalogue, mdr } = ports

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

  const forwarded = (answer: Forwarded, warnings: readonly string[]): Reply => ({
    status: answer.status,
    headers: {
      ...headersOf(answer.by.join(', '), [...warnings, ...answer.warnings]),
      'content-type': answer.type,
      ...(answer.count !== undefined && { 'ngsild-results-count': answer.count }),
    },
    text: answer.text,
  })

  /** Waits for what the client has written, and tells what it should know. */
  async function warningsOf({ headers }: Asker): Promise<string[]> {
    const warnings: string[] = [...ports.aged()]
    if (headers.has('link')) warnings.push(warningOf('the index does not read Link headers'))
    const wanted = headers.get(positionHeader)
    if (wanted !== null) {
      if (wanted !== 'latest' && !/^\d{1,15}$/.test(wanted))
        throw badRequestData('must be a log number, or latest', positionHeader)
      const n = wanted === 'latest' ? ports.changes.position() : Number(wanted)
      if (!(await own.reaches(n))) warnings.push(warningOf(`the index does not include ${n} yet`))
    }
    if (own.position() === undefined) warnings.push(warningOf('the index is being built and lacks entities'))
    const behind = own.behind()
    if (behind > 0) warnings.push(warningOf(`the index is ${behind} changes behind and may lack entities`))
    return warnings
  }

  /** Brokers that a request is handed on to: one for another tenant, or for what is here alone, to this gateway's own. */
  const brokersFor = (asker: Asker, parameters: Parameters): readonly BrokerPort[] =>
    isForeign(asker) || parameters.get('local') === 'true' ? [mdr] : ports.asked()

  return Object.freeze({
    /** @throws GatewayError of questions, and where no broker that is asked answers. */
    async query(asker: Asker, parameters: Parameters): Promise<Reply> {
      const accept = acceptOf(asker)
      // What was written last may have names that nobody had before.
      const warnings = await warningsOf(asker)
      const wish = wishOf(parameters, ports.context(), known)
      const { deduce } = ports.selecting
      const how = isDerivedWanted(asker.headers) ? { deduce, format: wish.shown.format } : undefined
      const foreign = isForeign(asker)
      const { window, isLocal } = wish.question
      if ((how !== undefined || window !== undefined) && !foreign && !isLocal)
        warnings.push(...ports.seenLast())
      if (foreign) checkForwarded(parameters, wish.question, 'entities of another tenant')
      if (accept === undefined) checkForwarded(parameters, wish.question, 'only a broker has this media type')
      if (foreign || wish.forward !== undefined || accept === undefined) {
        const answer = await askAll(brokersFor(asker, parameters), {
          parameters: writtenOut(parameters, wish.question, expand()),
          paging: wish.paging,
          headers: passedOn(asker),
          signal: asker.signal,
        })
        if (foreign || how === undefined || answer.status !== 200) return forwarded(answer, warnings)
        return forwarded({ ...answer, text: await textWithDerived(answer.text, how) }, warnings)
      }
      // Whoever names it among attributes means entities that have nothing else of them, too.
      const isAny = how !== undefined && wish.question.attrs?.includes(derivedName) === true
      const question = isAny ? { ...wish.question, attrs: undefined } : wish.question
      const { entities, count, bytes } = await ports.selecting.select(question, wish.paging, asker.signal)
      const plain = entities.map((entity) => rendered(entity, wish.shown, accept))
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

    /** One entity by its id. @throws GatewayError as `query`. */
    async retrieve(asker: Asker, id: string, parameters: Parameters): Promise<Reply> {
      const accept = acceptOf(asker)
      const warnings = await warningsOf(asker)
      const { shown, forward, question } = wishOf(
        new Map([...parameters, ['id', id]]),
        ports.context(),
        known,
      )
      const { deduce } = ports.selecting
      const how = isDerivedWanted(asker.headers) ? { deduce, format: shown.format } : undefined
      const entry = catalogue.entity(id)
      const paging = ['limit', 'offset', 'count'].find((name) => parameters.has(name))
      if (paging !== undefined) throw invalidRequest(`${paging} is not for a single entity`)
      const isPlain = [...parameters.keys()].every(
        (name) => name === 'pick' || name === 'omit' || name === 'options' || name === 'format',
      )
      const isHere = isPlain && entry !== undefined && (entry.kinds & searchable) !== 0
      if (isHere && forward === undefined && accept !== undefined && !isForeign(asker)) {
        const headers = { ...headersOf('index', warnings), 'content-type': accept }
        const plain = rendered(JSON.parse(entry.doc) as Entity, shown, accept)
        const [one] = how === undefined ? [plain] : await withDerived([plain], [id], how)
        return { status: 200, headers, text: JSON.stringify(one) }
      }
      const written = writtenOut(parameters, question, expand()).toString()
      const path = `${entitiesPath}/${encodeURIComponent(id)}${written === '' ? '' : `?${written}`}`
      const answer = await askForOne(brokersFor(asker, parameters), path, {
        headers: passedOn(asker),
        signal: asker.signal,
      })
      if (isForeign(asker) || how === undefined || answer.status !== 200) return forwarded(answer, warnings)
      return forwarded({ ...answer, text: await textWithDerived(answer.text, how) }, warnings)
    },
  })
}

const hasMembers = (one: JsonObject): boolean => Object.keys(one).some((name) => name !== '@context')

/** For a tenant that is not indexed this gateway's own broker answers. */
const isForeign = ({ headers }: Asker): boolean =>
  !['', 'default', null].includes(headers.get('ngsild-tenant'))

/** What the index answers in, and what brokers have beside it. */
const offered = ['application/json', 'application/ld+json', 'application/geo+json'] as const

/** The media type of the answer; undefined where only a broker has it, or can refuse it. */
function acceptOf({ headers }: Asker): 'application/json' | 'application/ld+json' | undefined {
  const qualities = qualitiesOf(headers.get('accept') || '*/*', offered)
  const best = Math.max(...qualities)
  const type = best === 0 ? undefined : offered[qualities.indexOf(best)]
  return type === 'application/geo+json' ? undefined : type
}

/**
 * Headers that mean the same to a broker. Credentials of a client are for us, and never for another broker; and a tenant is one of this
 * gateway, which alone is asked for it.
 */
function passedOn(asker: Asker): Record<string, string> {
  const accept = asker.headers.get('accept')
  const tenant = isForeign(asker) ? asker.headers.get('ngsild-tenant') : null
  return { ...(accept !== null && { Accept: accept }), ...(tenant !== null && { 'NGSILD-Tenant': tenant }) }
}

function rendered(entity: Entity, shown: Shown, type: string): JsonObject {
  return renderEntity(entity, undefined, {
    ...shown,
    context: coreContext,
    atContext: type === 'application/ld+json' ? contextMember(coreContext) : undefined,
  })
}
