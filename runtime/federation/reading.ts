/**
 * Distributed consumption (GS CIM 009, 4.3.6 and 5.7): asks the sources that claim something of what is wanted, and
 * gives a broker that answers the same questions from here and from what they told. Where a source fails the answer
 * comes without it, or with its last known copy, and a warning says so.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits.ts'
import type { EntityQuery, EntityView, QueryPage, TenantBroker } from '#broker/types.ts'
import type { Json } from '#contract'
import type { Context } from '#ngsi-ld/context.ts'
import { type EntityCopy, mergeCopies, timesIn } from '#ngsi-ld/distribution.ts'
import { attributeNames, parseEntity } from '#ngsi-ld/entity.ts'
import { isObject, type JsonObject, listOf } from '#ngsi-ld/json.ts'
import { modeOf, type Registration } from '#ngsi-ld/registration.ts'
import { claimOf, type Interest, isOfInterest, namesOf } from '#ngsi-ld/registration-match.ts'
import { type Operation, offers } from '#ngsi-ld/registration-operations.ts'
import { compileSearch } from '#ngsi-ld/search.ts'
import {
  type Asker,
  agentOf,
  type SourceAnswer,
  type SourceRequest,
  type Sources,
  type Warning,
  warningOf,
} from './sources.ts'

/** What is wanted, as the client said it; names and texts are in the context of its request. */
export interface Question {
  readonly interests: readonly Interest[]
  /** Parameters that a source may be asked with as they are: type, id, idPattern, q, scopeQ, the geo set. */
  readonly parameters: Readonly<Record<string, string>>
  /** Attributes that q and the geo-query look at, canonical. */
  readonly looksAt: readonly string[]
}

/** A copy and whose it is. */
export interface SourcedCopy extends EntityCopy {
  /** Id of the registration. */
  readonly source: string
}

export interface Gathered {
  readonly broker: TenantBroker
  readonly copies: readonly SourcedCopy[]
  /** Entities held here that matched by what is held here alone, although others may have newer copies of them. */
  uncertain(): readonly string[]
  readonly warnings: readonly Warning[]
}

/** Finds the context that an answer brings along. */
export type ResolveContext = (local: Json) => Context | Promise<Context>

export interface ReaderPorts {
  readonly sources: Sources
  readonly resolve: ResolveContext
}

export interface ReadRequest {
  readonly asker: Asker
  readonly broker: TenantBroker
  readonly registrations: readonly Registration[]
  readonly context: Context
  /** Headers that name the context. */
  readonly headers: Readonly<Record<string, string>>
}

const sysAttrs = { options: 'sysAttrs' }
/** Parameters that only make sense where all attributes that they look at are. */
const conditions: ReadonlySet<string> = new Set(['q', 'georel', 'geometry', 'coordinates', 'geoproperty'])

export function createReader({ sources, resolve }: ReaderPorts) {
  /** Entities of one source; none with a warning where it fails. */
  async function entitiesOf(
    read: ReadRequest,
    registration: Registration,
    request: SourceRequest,
  ): Promise<{ entities: JsonObject[]; context: Context; warnings: Warning[] }> {
    const entities: JsonObject[] = []
    const warnings: Warning[] = []
    let { context } = read
    let next: SourceRequest | undefined = request
    while (next !== undefined) {
      const answer: SourceAnswer = await sources.ask(read.asker, registration, next)
      const warning = warningOf(registration, answer)
      if (warning !== undefined) warnings.push(warning)
      if ('failure' in answer || answer.status !== 200) break
      try {
        const body = JSON.parse(answer.text) as Json
        for (const item of listOf<Json>(body)) if (isObject(item)) entities.push(item)
        const brought = entities.find((entity) => entity['@context'] !== undefined)?.['@context']
        if (brought !== undefined) context = await resolve(brought)
      } catch (error) {
        warnings.push({ code: 199, agent: agentOf(registration), text: (error as Error).message })
        break
      }
      if (entities.length >= limits.sourceEntitiesMax.value) {
        warnings.push({ code: 199, agent: agentOf(registration), text: 'has more entities than were taken' })
        break
      }
      next = nextPage(next, registration, answer.headers['link'])
    }
    return { entities, context, warnings }
  }

  async function copiesOf(
    read: ReadRequest,
    registration: Registration,
    request: SourceRequest,
  ): Promise<{ copies: SourcedCopy[]; warnings: Warning[] }> {
    const { entities, context, warnings } = await entitiesOf(read, registration, request)
    const copies = entities.flatMap((json): SourcedCopy[] => {
      try {
        const { '@context': _, ...body } = json
        const whole = parseEntity(body, context)
        const claim = claimOf(registration, whole.id, listOf<string>(whole.type))
        if (claim === undefined) return []
        const mine = attributeNames(whole).filter((name) => claim === 'all' || claim.has(name))
        const { id, type, scope } = whole
        const entity = {
          id,
          type,
          ...(scope === undefined ? {} : { scope }),
          ...Object.fromEntries(mine.map((name) => [name, whole[name]])),
        }
        const source = registration.id
        return [{ source, mode: modeOf(registration), claim, entity, times: timesIn(body, context) }]
      } catch (error) {
        warnings.push({ code: 199, agent: agentOf(registration), text: (error as Error).message })
        return []
      }
    })
    return { copies, warnings }
  }

  /** All that these sources have for a question. */
  async function gather(
    read: ReadRequest,
    question: Question,
    one: string | undefined,
    before: readonly SourcedCopy[] = [],
  ): Promise<Gathered> {
    const asked = read.registrations.flatMap((registration) => {
      const request = requestFor(registration, question, one, read)
      return request === undefined ? [] : [copiesOf(read, registration, request)]
    })
    if (asked.length === 0 && before.length === 0)
      return { broker: read.broker, copies: [], uncertain: () => [], warnings: [] }
    const told = await Promise.all(asked)
    const copies = [...before, ...told.flatMap((each) => each.copies)]
    const byId = new Map<string, EntityCopy[]>()
    for (const copy of copies) {
      const known = byId.get(copy.entity.id)
      if (known === undefined) byId.set(copy.entity.id, [copy])
      else known.push(copy)
    }
    const seen = new Set<string>()
    return {
      broker: overlay(read.broker, byId, seen),
      copies,
      uncertain: () => [...seen].filter((id) => !byId.has(id)),
      warnings: told.flatMap(({ warnings }) => warnings),
    }
  }

  return Object.freeze({ gather })
}

/** A broker that knows copies of others beside its own entities; `matched` takes down which of its own it finds. */
function overlay(
  broker: TenantBroker,
  byId: ReadonlyMap<string, readonly EntityCopy[]>,
  matched: Set<string>,
): TenantBroker {
  const merged = (id: string, own: EntityView | undefined): EntityView | undefined => {
    const others = byId.get(id)
    if (others === undefined) return own
    const local: EntityCopy[] =
      own === undefined ? [] : [{ mode: 'local', claim: 'all', entity: own.entity(), times: own.times() }]
    const { entity, times } = mergeCopies([...local, ...others])
    const text = JSON.stringify(entity)
    return {
      id,
      text: () => text,
      entity: () => JSON.parse(text) as typeof entity,
      times: () => times,
      version: () => Number.parseInt(hash('sha1', text).slice(0, 12), 16),
    }
  }
  return Object.freeze({
    ...broker,
    retrieve: (id) => merged(id, broker.retrieve(id)),
    query(query: EntityQuery): QueryPage {
      const { limit, offset, count, ...search } = query
      const matches = compileSearch(search)
      const fits = (view: EntityView): boolean => matches(view.entity(), view.times())
      const first = broker.query({ ...query, limit: offset + limit, offset: 0, count: true })
      const held = first.entities.flatMap((view) => {
        const whole = merged(view.id, view)!
        return whole === view || fits(whole) ? [whole] : []
      })
      const seen = new Set(first.entities.map(({ id }) => id))
      for (const id of seen) matched.add(id)
      const others = [...byId.keys()].sort().flatMap((id) => {
        if (seen.has(id)) return []
        const own = broker.retrieve(id)
        // One that is held here and matches as it is comes on a later page.
        if (own !== undefined && fits(own)) return []
        const whole = merged(id, own)!
        return fits(whole) ? [whole] : []
      })
      const all = first.more ? held : [...held, ...others]
      const entities = all.slice(offset, offset + limit)
      const total = (first.count ?? held.length) + others.length
      return {
        entities,
        more: first.more || all.length > offset + limit || (first.more && others.length > 0),
        ...(count ? { count: total } : {}),
      }
    },
  } satisfies TenantBroker)
}

/** How a source is asked; undefined when it has nothing of what is wanted. */
function requestFor(
  registration: Registration,
  question: Question,
  one: string | undefined,
  { context, headers }: ReadRequest,
): SourceRequest | undefined {
  const infos = registration.information.filter((info) =>
    question.interests.some((interest) => isOfInterest(interest, info)),
  )
  if (infos.length === 0) return undefined
  const wanted = question.interests[0]?.attrs
  const named = infos.map(namesOf)
  const claimed = named.includes(undefined) ? undefined : new Set(named.flatMap((names) => [...names!]))
  const attrs = claimed === undefined ? wanted : [...claimed].filter((name) => wanted?.includes(name) ?? true)
  const isBlind = claimed !== undefined && !question.looksAt.every((name) => claimed.has(name))
  const entities = infos.flatMap((info) => info.entities ?? [])
  const types = [...new Set(entities.flatMap((entity) => entity.types))]
  const ids = entities.flatMap(({ id }) => id ?? [])
  const given: Record<string, string> = {}
  for (const [name, value] of Object.entries(question.parameters))
    if (!isBlind || !conditions.has(name)) given[name] = value
  if (given['type'] === undefined && types.length > 0) given['type'] = types.map(context.compact).join(',')
  if (given['id'] === undefined && entities.length > 0 && ids.length === entities.length)
    given['id'] = [...new Set(ids)].join(',')
  if (attrs !== undefined) given['attrs'] = attrs.map(context.compact).join(',')
  const ways: readonly [Operation, () => SourceRequest][] = [
    [
      'retrieveEntity',
      () => {
        const { attrs: names } = given
        const parameters = names === undefined ? sysAttrs : { attrs: names, ...sysAttrs }
        return { method: 'GET', path: pathOf(`/entities/${encodeURIComponent(one!)}`, parameters), headers }
      },
    ],
    ['queryEntity', () => ({ method: 'GET', path: pathOf('/entities', { ...given, ...sysAttrs }), headers })],
    ['queryBatch', () => postQuery(given, headers)],
  ]
  const usable = one === undefined ? ways.slice(1) : ways
  return usable.find(([operation]) => offers(registration, operation))?.[1]()
}

const basePath = '/ngsi-ld/v1'

function pathOf(path: string, parameters: Readonly<Record<string, string>>): string {
  const pairs = Object.keys(parameters)
    .sort()
    .map((name) => `${name}=${encodeURIComponent(parameters[name]!)}`)
  return `${basePath}${path}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`
}

/** The same question as a Query in a body [NGSI-LD 5.2.23]. */
function postQuery(
  given: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>>,
): SourceRequest {
  const { type, id, idPattern, attrs, q, scopeQ, georel, geometry, coordinates, geoproperty } = given
  const ids = id?.split(',')
  const selector = {
    ...(type === undefined ? {} : { type }),
    ...(ids === undefined ? {} : { id: ids.length === 1 ? ids[0] : ids }),
    ...(idPattern === undefined ? {} : { idPattern }),
  }
  const body = {
    type: 'Query',
    ...(Object.keys(selector).length === 0 ? {} : { entities: [selector] }),
    ...(attrs === undefined ? {} : { attrs: attrs.split(',') }),
    ...(q === undefined ? {} : { q }),
    ...(scopeQ === undefined ? {} : { scopeQ }),
    ...(georel === undefined ? {} : { geoQ: { georel, geometry, coordinates, geoproperty } }),
  }
  return {
    method: 'POST',
    path: pathOf('/entityOperations/query', sysAttrs),
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

/** The request for the page that a Link header calls next, at the same source only. */
function nextPage(
  request: SourceRequest,
  { endpoint }: Registration,
  link: string | readonly string[] | undefined,
): SourceRequest | undefined {
  const text = typeof link === 'string' ? link : (link ?? []).join(',')
  const found = /<([^<>]*)>\s*;[^<]*rel="?next"?/i.exec(text)
  if (found === null) return undefined
  const base = endpoint.replace(/\/+$/, '')
  const url = URL.parse(found[1]!, base + request.path)
  if (url === null || url.origin !== new URL(base).origin) return undefined
  const at = url.pathname.indexOf(`${basePath}/`)
  const path = at < 0 ? undefined : url.pathname.slice(at) + url.search
  return path === undefined || path === request.path ? undefined : { ...request, path }
}
