/**
 * Routes that change one entity or its attributes (GS CIM 009, 6.5 to 6.7). All accept `type`, which the
 * entity must have, and If-Match, which prevents overwriting a version the client has not read.
 */

import type { UpdateResult, WriteOptions } from '#broker/entities/entity-requests.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import { optionsOf } from '#http/request/negotiate.ts'
import { idOf } from '#http/request/path-ids.ts'
import type { ApiRequest, BodyOptions, RequestHead } from '#http/request/request.ts'
import { versionsOf } from '#http/request/version-tag.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import { isLanguageTag } from '#ngsi-ld/entity/attribute-kind.ts'
import {
  parseAttribute,
  parseEntity,
  parseFragment,
  parsePartial,
  withoutContext,
} from '#ngsi-ld/entity/entity.ts'
import type { MergeOptions } from '#ngsi-ld/entity/merge.ts'
import { parseTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { type Parameters, truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { canonicalDateTime, toleratedDateTime } from '#ngsi-ld/values/datetime.ts'
import { checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { EntityRoutePorts } from './entity-routes.ts'

const oneEntity = ['local', 'type'] as const
const plainParameters = new Set<string>(oneEntity)
const mergeParameters = new Set<string>([...oneEntity, 'options', 'format', 'lang', 'observedAt'])
const optionParameters = new Set<string>([...oneEntity, 'options'])
const deleteAttributeParameters = new Set<string>([...oneEntity, 'datasetId', 'deleteAll'])

const representations = ['normalized', 'concise', 'simplified', 'keyValues'] as const
const isSimplified = (options: ReadonlySet<string>): boolean =>
  options.has('simplified') || options.has('keyValues')

export function createEntityWriteRoutes({ requests, answers, rules }: Omit<EntityRoutePorts, 'reads'>) {
  const updated = (request: RequestHead, result: UpdateResult): Response => {
    if (result.notUpdated.length === 0) return answers.noContent(request)
    const notUpdated = result.notUpdated.map(({ attributeName, reason }) => ({
      attributeName: toIri(attributeName),
      reason,
    }))
    return answers.data(request, { updated: result.updated.map(toIri), notUpdated }, { status: 207 })
  }

  /** The origin and the preconditions of a write. */
  const conditionsOf = (c: HttpContext, { parameters, context }: RequestHead): WriteOptions => {
    const by = requests.by(c)
    const type = parameters.get('type')
    const versions = versionsOf(headerOf(c, 'if-match'))
    if (type === undefined && versions === undefined) return { by }
    const selection = type === undefined ? undefined : parseTypeSelection(type, context.expand)
    return { by, when: { selection, versions } }
  }

  /** Reads a write request with a body: the entity, the preconditions and the broker. */
  const write = async (c: HttpContext, known: ReadonlySet<string>, more: BodyOptions = {}) => {
    const id = idOf(c)
    const request = await requests.body(c, { known, ...more })
    const options = conditionsOf(c, request)
    const broker = async (): Promise<TenantBroker> => request.enter()
    return { id, request, options, broker }
  }

  return Object.freeze({
    async merge(c: HttpContext): Promise<Response> {
      const { id, request, options, broker } = await write(c, mergeParameters)
      const merge = mergeOptionsOf(request.parameters)
      const reading = { id, merging: true, empty: true, simplified: merge.simplified }
      const fragment = parseFragment(request.body, request.context, reading)
      await (await broker()).merge(id, fragment, { ...options, merge })
      return answers.noContent(request)
    },

    async replace(c: HttpContext): Promise<Response> {
      const { id, request, options, broker } = await write(c, plainParameters)
      const entity = parseEntity(request.body, request.context, { id })
      await (await broker()).replace(entity, options)
      return answers.noContent(request)
    },

    async remove(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const request = await requests.read(c, plainParameters)
      const { by, when } = conditionsOf(c, request)
      await request.broker.remove(id, by, when)
      return answers.noContent(request)
    },

    async append(c: HttpContext): Promise<Response> {
      const { id, request, options, broker } = await write(c, optionParameters, { patches: true })
      const noOverwrite = optionsOf(request.parameters, ['noOverwrite']).has('noOverwrite')
      const fragment = parseFragment(request.body, request.context, { id })
      return updated(request, await (await broker()).append(id, fragment, { ...options, noOverwrite }))
    },

    async update(c: HttpContext): Promise<Response> {
      const { id, request, options, broker } = await write(c, plainParameters)
      const fragment = parseFragment(request.body, request.context, { id, nulls: true })
      const appendMissing = rules.updateAppendsMissing
      return updated(request, await (await broker()).update(id, fragment, { ...options, appendMissing }))
    },

    async updateAttribute(c: HttpContext): Promise<Response> {
      const { id, request, options, broker } = await write(c, plainParameters)
      const name = attributeOf(c, request)
      const partial = parsePartial(request.body, name, request.context)
      await (await broker()).partial(id, name, partial, options)
      return answers.noContent(request)
    },

    async replaceAttribute(c: HttpContext): Promise<Response> {
      const { id, request, options, broker } = await write(c, plainParameters)
      const name = attributeOf(c, request)
      const attribute = parseAttribute(withoutContext(request.body), name, request.context)
      await (await broker()).replaceAttribute(id, name, attribute, options)
      return answers.noContent(request)
    },

    async removeAttribute(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const request = await requests.read(c, deleteAttributeParameters)
      const name = attributeOf(c, request)
      const given = request.parameters.get('datasetId')
      const datasetId = given === undefined || given === '@none' ? undefined : checkUri(given, 'datasetId')
      const deleteAll = truthOf(request.parameters, 'deleteAll') ?? false
      await request.broker.deleteAttribute(id, name, { ...conditionsOf(c, request), datasetId, deleteAll })
      return answers.noContent(request)
    },
  })
}

/** @throws ngsi-ld.bad-request-data, ngsi-ld.invalid-request */
function mergeOptionsOf(parameters: Parameters): MergeOptions {
  const lang = parameters.get('lang')
  if (lang !== undefined && !isLanguageTag(lang)) throw badRequestData('must be a language tag', 'lang')
  const time = parameters.get('observedAt')
  const observedAt = time === undefined ? undefined : canonicalDateTime(toleratedDateTime(time))
  if (time !== undefined && observedAt === undefined) throw badRequestData('must be a DateTime', 'observedAt')
  const options = optionsOf(parameters, representations)
  const format = parameters.get('format')
  return { lang, observedAt, simplified: isSimplified(format === undefined ? options : new Set([format])) }
}

function attributeOf(c: HttpContext, request: Pick<ApiRequest, 'context'>): string {
  return checkName(request.context.expand(c.req.param('attribute') ?? ''), 'attribute')
}
