/**
 * The query interface of the index and what operators ask it, as HTTP. Answers say who answered (`Selvedge-Answered-By`) and what
 * the index includes (`Selvedge-Index-Position`); a client that sends a position is answered when the index includes it. There
 * is no Link header in answers, and one in a request means nothing.
 */
import { GatewayError } from '#base/errors.ts'
import type { BrokerPort, ChangesPort, HostBase, Json, RouteEnvironment } from '#contract'
import { contextMember, coreContext } from '#ngsi-ld/context.ts'
import type { Entity } from '#ngsi-ld/entity.ts'
import { isObject, type JsonObject, listOf, textsOf } from '#ngsi-ld/json.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/problem.ts'
import { renderEntity } from '#ngsi-ld/representation.ts'
import { readingBareNames } from './bare-names.ts'
import type { Catalogue } from './catalogue.ts'
import { derivedName, isDerivedWanted, textWithDerived, withDerived } from './deduced.ts'
import { askAll, askForOne, type Forwarded, warningOf, writtenOut } from './forwarding.ts'
import { kinds, searchable } from './kinds.ts'
import type { OwnBroker } from './own-broker.ts'
import { checkForwarded, type Known, type Parameters, type Shown, wishOf } from './question.ts'
import type { Selecting } from './selecting.ts'

export interface RoutePorts extends Pick<HostBase<unknown>, 'context'> {
  readonly catalogue: Catalogue
  readonly selecting: Selecting
  readonly own: OwnBroker
  readonly changes: Pick<ChangesPort, 'position'>
  readonly mdr: BrokerPort
  /** All brokers that are asked, the gateway's own first. */
  readonly asked: () => readonly BrokerPort[]
  /** Warnings of brokers whose entries are aged. */
  readonly aged: () => readonly string[]
  readonly status: () => object
  /** Begins to build the index anew. */
  readonly rebuild: () => Promise<void>
}

const entities = '/ngsi-ld/v1/entities'
const positionHeader = 'Selvedge-Index-Position'

/** What goes with an answer. */
interface Told {
  readonly by: string
  readonly warnings: readonly string[]
}

export function createRoutes(ports: RoutePorts) {
  const { own, catalogue, mdr } = ports

  const known: Known = {
    isName: (name) => catalogue.nameOf(name) !== undefined,
    isBare: (id) => catalogue.entity(id)?.kinds === kinds.observation,
  }
  const expand = () => readingBareNames(ports.context(), known.isName)

  const headersOf = ({ by, warnings }: Told): Headers => {
    const headers = new Headers({ 'Selvedge-Answered-By': by })
    const position = own.position()
    if (position !== undefined) headers.set(positionHeader, String(position))
    for (const warning of warnings) headers.append('NGSILD-Warning', warning)
    return headers
  }

  function forwarded(answer: Forwarded, warnings: readonly string[]): Response {
    const headers = headersOf({ by: answer.by.join(', '), warnings: [...warnings, ...answer.warnings] })
    headers.set('Content-Type', answer.type)
    if (answer.count !== undefined) headers.set('NGSILD-Results-Count', answer.count)
    return new Response(answer.text, { status: answer.status, headers })
  }

  /** Waits for what the client has written, and tells what it should know. */
  async function warningsOf(request: Request): Promise<string[]> {
    const warnings: string[] = [...ports.aged()]
    if (request.headers.has('link')) warnings.push(warningOf('the index does not read Link headers'))
    const wanted = request.headers.get(positionHeader)
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

  /** For a tenant that is not indexed its own broker answers. */
  const isForeign = (request: Request): boolean =>
    !['', 'default', null].includes(request.headers.get('ngsild-tenant'))

  async function query(request: Request, parameters: Parameters, environment: RouteEnvironment) {
    const accept = acceptOf(request)
    // What was written last may have names that nobody had before.
    const warnings = await warningsOf(request)
    const wish = wishOf(parameters, ports.context(), known)
    const { deduce } = ports.selecting
    const how = isDerivedWanted(request.headers) ? { deduce, format: wish.shown.format } : undefined
    const foreign = isForeign(request)
    if (foreign) checkForwarded(parameters, wish.question, 'entities of another tenant')
    if (accept === undefined) checkForwarded(parameters, wish.question, 'only a broker has this media type')
    if (foreign || wish.forward !== undefined || accept === undefined) {
      const answer = await askAll(foreign ? [mdr] : ports.asked(), {
        parameters: writtenOut(parameters, wish.question, expand()),
        paging: wish.paging,
        headers: passedOn(request),
        signal: environment.signal,
      })
      if (foreign || how === undefined || answer.status !== 200) return forwarded(answer, warnings)
      return forwarded({ ...answer, text: await textWithDerived(answer.text, how) }, warnings)
    }
    // Whoever names it among attributes means entities that have nothing else of them, too.
    const isAny = how !== undefined && wish.question.attrs?.includes(derivedName) === true
    const question = isAny ? { ...wish.question, attrs: undefined } : wish.question
    const found = await ports.selecting.select(question, wish.paging, environment.signal)
    const headers = headersOf({ by: 'index', warnings })
    headers.set('Content-Type', accept)
    if (found.count !== undefined) headers.set('NGSILD-Results-Count', String(found.count))
    const plain = found.entities.map((entity) => rendered(entity, wish.shown, accept))
    const ids = found.entities.map(({ id }) => id)
    const shown = how === undefined ? plain : await withDerived(plain, ids, how)
    return new Response(JSON.stringify(shown.filter(hasMembers)), { headers })
  }

  async function retrieve(
    request: Request,
    { id, parameters }: { id: string; parameters: Parameters },
    environment: RouteEnvironment,
  ) {
    const accept = acceptOf(request)
    const warnings = await warningsOf(request)
    const { shown, forward, question } = wishOf(new Map([...parameters, ['id', id]]), ports.context(), known)
    const { deduce } = ports.selecting
    const how = isDerivedWanted(request.headers) ? { deduce, format: shown.format } : undefined
    const entry = catalogue.entity(id)
    const paging = ['limit', 'offset', 'count'].find((name) => parameters.has(name))
    if (paging !== undefined) throw invalidRequest(`${paging} is not for a single entity`)
    const isPlain = [...parameters.keys()].every(
      (name) => name === 'pick' || name === 'omit' || name === 'options' || name === 'format',
    )
    const isHere = isPlain && entry !== undefined && (entry.kinds & searchable) !== 0
    if (isHere && forward === undefined && accept !== undefined && !isForeign(request)) {
      const headers = headersOf({ by: 'index', warnings })
      headers.set('Content-Type', accept)
      const plain = rendered(JSON.parse(entry.doc) as Entity, shown, accept)
      const [one] = how === undefined ? [plain] : await withDerived([plain], [id], how)
      return new Response(JSON.stringify(one), { headers })
    }
    const written = writtenOut(parameters, question, expand()).toString()
    const path = `${entities}/${encodeURIComponent(id)}${written === '' ? '' : `?${written}`}`
    const brokers = isForeign(request) ? [mdr] : ports.asked()
    const answer = await askForOne(brokers, path, {
      headers: passedOn(request),
      signal: environment.signal,
    })
    if (isForeign(request) || how === undefined || answer.status !== 200) return forwarded(answer, warnings)
    return forwarded({ ...answer, text: await textWithDerived(answer.text, how) }, warnings)
  }

  return Object.freeze({
    async fetch(request: Request, environment: RouteEnvironment): Promise<Response> {
      const url = new URL(request.url)
      const path = url.pathname.replace(/\/+$/, '')
      const only = (method: string): void => {
        if (request.method !== method && !(method === 'GET' && request.method === 'HEAD'))
          throw new GatewayError('http.method-not-allowed', `${request.method} is not for this path`, {
            allow: method,
          })
      }
      if (path === entities) {
        only('GET')
        return query(request, parametersOf(url), environment)
      }
      if (path === '/ngsi-ld/v1/entityOperations/query') {
        only('POST')
        const body = await bodyOf(environment)
        return query(request, new Map([...parametersOf(url), ...body]), environment)
      }
      const [, id] = /^\/ngsi-ld\/v1\/entities\/([^/]+)$/.exec(path) ?? []
      if (id !== undefined) {
        only('GET')
        return retrieve(request, { id: decodeURIComponent(id), parameters: parametersOf(url) }, environment)
      }
      if (path.startsWith('/ngsi-ld/v1/temporal'))
        throw new GatewayError('indexing.no-history', 'histories are not indexed')
      if (path === '/api/health') {
        only('GET')
        return Response.json({
          status: 'UP',
          position: own.position() ?? null,
          log: ports.changes.position(),
        })
      }
      if (path === '/api/status') {
        only('GET')
        return Response.json(ports.status())
      }
      if (path === '/api/rebuild') {
        only('POST')
        await ports.rebuild()
        return Response.json(ports.status(), { status: 202 })
      }
      throw new GatewayError('http.no-route', `there is nothing at ${url.pathname} of the index`)
    },
  })
}

const hasMembers = (one: JsonObject): boolean => Object.keys(one).some((name) => name !== '@context')

function parametersOf(url: URL): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const [name, value] of url.searchParams) {
    if (parameters.has(name)) throw invalidRequest(`query parameter ${name} is given twice`)
    parameters.set(name, value)
  }
  return parameters
}

/** The media type of the answer; undefined where only a broker has it. */
function acceptOf(request: Request): 'application/json' | 'application/ld+json' | undefined {
  const ranges = (request.headers.get('accept') || '*/*').split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    return { type, weight: weight === undefined ? 1 : Number(weight.slice(2)) }
  })
  const best = Math.max(...ranges.map(({ weight }) => weight))
  const wanted = ranges.flatMap(({ type, weight }) => (weight > 0 && weight === best ? [type] : []))
  if (['application/json', '*/*', 'application/*'].some((type) => wanted.includes(type)))
    return 'application/json'
  return wanted.includes('application/ld+json') ? 'application/ld+json' : undefined
}

/** Headers that mean the same to a broker. */
function passedOn(request: Request): Record<string, string> {
  const headers: Record<string, string> = {}
  // Credentials of a client are for us, and never for another broker.
  for (const name of ['Accept', 'NGSILD-Tenant']) {
    const value = request.headers.get(name)
    if (value !== null) headers[name] = value
  }
  return headers
}

function rendered(entity: Entity, shown: Shown, type: string): JsonObject {
  const { attrs, ...rest } = shown
  return renderEntity(entity, undefined, {
    ...rest,
    attrs,
    context: coreContext,
    atContext: type === 'application/ld+json' ? contextMember(coreContext) : undefined,
  })
}

/** The members of a query body as parameters: one entity selector, and what has the same name in both. */
async function bodyOf(environment: RouteEnvironment): Promise<Map<string, string>> {
  let body: unknown
  try {
    body = JSON.parse((await environment.body()).toString())
  } catch {
    throw invalidRequest('the body is no JSON')
  }
  if (!isObject(body)) throw badRequestData('must be a JSON object', 'body')
  const parameters = new Map<string, string>()
  for (const [member, value] of Object.entries(body)) {
    if (member === 'type' && value === 'Query') continue
    if (member === 'entities') for (const [name, text] of selectorOf(value)) parameters.set(name, text)
    else if (member === 'geoQ' || member === 'temporalQ') {
      if (!isObject(value)) throw badRequestData('must be an object', member)
      for (const [name, part] of Object.entries(value)) parameters.set(name, asParameter(part))
    } else if (bodyMembers.has(member)) parameters.set(member, listed(value, member))
    else throw badRequestData('is not a member of a query that the index reads', member)
  }
  return parameters
}

const bodyMembers: ReadonlySet<string> = new Set(['attrs', 'pick', 'omit', 'q', 'scopeQ', 'search'])

const asParameter = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** A text, or several with commas between. */
function listed(value: Json, field: string): string {
  const texts = textsOf(value)
  if (texts.length === 0 || texts.length < listOf(value).length)
    throw badRequestData('must be a text, or a list of texts', field)
  return texts.join()
}

function selectorOf(value: Json): [string, string][] {
  const [one, ...more] = listOf(value)
  if (!isObject(one) || more.length > 0) throw badRequestData('must hold one selector', 'entities')
  return Object.entries(one).map(([name, part]) => [name, listed(part, `entities.${name}`)])
}
