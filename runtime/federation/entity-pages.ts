/**
 * Reads all entities of one source page by page, up to a limit. If the source fails, the result is incomplete
 * and has a warning.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { offers } from '#ngsi-ld/federation/registration-operations.ts'
import { isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'
import { nextPage, type ReadRequest } from './requests.ts'
import type { SourceRequest } from './source-form.ts'
import { agentOf, type SourceAnswer, type Sources, type Warning } from './sources.ts'
import { invalidAnswer, warningsOf } from './warnings.ts'

/** Resolves a context in an answer; a tenant may host it. */
export type ResolveContext = (local: Json, tenant: string) => Context | Promise<Context>

export interface ReaderPorts {
  readonly sources: Sources
  readonly resolve: ResolveContext
}

export interface EntityAnswer {
  readonly entities: readonly JsonObject[]
  /** The context of their names. */
  readonly context: Context
  readonly warnings: Warning[]
  /** The Content-Range of every page whose histories were cut. */
  readonly ranges: readonly string[]
  /** Location of the entity map that the source created. */
  readonly map: string | undefined
}

/** The entities of one source; with a warning if it fails. */
export async function entitiesOf(
  { sources, resolve }: ReaderPorts,
  read: ReadRequest,
  registration: Registration,
  request: SourceRequest,
): Promise<EntityAnswer> {
  const ranges: string[] = []
  const entities: JsonObject[] = []
  const warnings: Warning[] = []
  let { context } = read
  let map: string | undefined
  let next: SourceRequest | undefined = withMapParameters(request, read, registration)
  while (next !== undefined) {
    const answer: SourceAnswer = await sources.send(read.requester, registration, next)
    // A source that refuses the entity map parameters is queried again without them.
    if (entities.length === 0 && next !== request && 'status' in answer && answer.status === 400) {
      next = request
      continue
    }
    warnings.push(...warningsOf(registration, answer))
    if ('failure' in answer || !isAnswer(answer.status)) break
    const location = answer.headers['ngsild-entitymap']
    if (typeof location === 'string') map ??= location
    const range = answer.headers['content-range']
    if (answer.status === 206 && typeof range === 'string') ranges.push(range)
    try {
      const page = entitiesIn(JSON.parse(answer.text) as Json)
      const brought = [...entities, ...page].find((entity) => entity['@context'] !== undefined)?.['@context']
      // Without its context, a page cannot be interpreted.
      context = brought === undefined ? answer.context : await resolve(brought, read.requester.tenant)
      entities.push(...page)
    } catch (error) {
      warnings.push(invalidAnswer(registration, error))
      break
    }
    if (entities.length >= limits.sourceEntitiesMax.value) {
      warnings.push({
        code: 199,
        agent: agentOf(registration),
        text: 'has more entities than the limit; the rest is missing',
      })
      break
    }
    next = nextPage({ ...next, contexts: [answer.context] }, registration, answer.headers['link'])
  }
  return { entities, context, warnings, ranges, map }
}

/** 201: it also created an entity map; 203: it answered in an older form; 206: there is more. */
const isAnswer = (status: number): boolean => [200, 201, 203, 206].includes(status)

/** Adds the entity map parameters to a query, if requested and offered by the source. */
function withMapParameters(
  request: SourceRequest,
  { mapParameters }: ReadRequest,
  registration: Registration,
): SourceRequest {
  const { method, path } = request
  if (mapParameters === undefined || method !== 'GET') return request
  const isPast = path.startsWith('/ngsi-ld/v1/temporal/')
  if (!offers(registration, isPast ? 'createEntityMapQueryTemporal' : 'createEntityMapQueryEntity'))
    return request
  const parameters = new URLSearchParams({ entityMap: 'true', ...mapParameters })
  return { ...request, path: `${path}${path.includes('?') ? '&' : '?'}${parameters}` }
}

/** The entities of an answer: one, a list, or the properties of a GeoJSON collection. */
function entitiesIn(body: Json): JsonObject[] {
  const isCollection = isObject(body) && body['type'] === 'FeatureCollection'
  return listOf<Json>(isCollection ? (body['features'] ?? []) : body)
    .filter(isObject)
    .map((item) => {
      const { type, id, properties, '@context': context = isCollection ? body['@context'] : undefined } = item
      if (type !== 'Feature' || !isObject(properties)) return item
      return {
        ...(id === undefined ? {} : { id }),
        ...properties,
        ...(context === undefined ? {} : { '@context': context }),
      }
    })
}
