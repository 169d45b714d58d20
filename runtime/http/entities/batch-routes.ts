/**
 * Routes of batch operations (GS CIM 009, 6.14 to 6.17). Items are independent: an invalid or failed item is
 * reported in a 207 and does not stop the others. Only a body that is not a list is refused as a whole.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BatchItemError, BatchResult, ItemSource } from '#broker/entities/entity-requests.ts'
import type { Json } from '#contract'
import type { ApiPorts } from '#http/request/api-ports.ts'
import type { BatchItem } from '#http/request/batch-items.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import type { Problems } from '#http/request/error-response.ts'
import { optionsOf } from '#http/request/negotiate.ts'
import type { BatchRequest, RequestHead } from '#http/request/request.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { type Entity, type ParseOptions, parseEntity } from '#ngsi-ld/entity/entity.ts'
import {
  statedHeader,
  statedIn,
  type WrittenTimes,
  writtenTimes,
} from '#ngsi-ld/federation/uplink-statements.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { checkUri } from '#ngsi-ld/values/names.ts'
import { invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { multiStatus } from './batch-result.ts'

export const entityOperationsPath = '/ngsi-ld/v1/entityOperations'

export interface EntityOperationRoutePorts extends ApiPorts {
  readonly problems: Problems
}

const localParameters = new Set(['local'])
const optionParameters = new Set(['local', 'options'])

export function createEntityOperationRoutes({ requests, answers, problems }: EntityOperationRoutePorts) {
  const failedInPart = (request: RequestHead, result: BatchResult): Response =>
    multiStatus({ answers, problems }, request, result)

  return Object.freeze({
    /** 201 with all ids if all were created, otherwise 207. */
    async create(c: HttpContext): Promise<Response> {
      const request = await requests.batch(c, { known: localParameters, creates: true })
      const { entities, errors } = await entitiesOf(request)
      const result = withErrors(await (await request.enter()).batchCreate(entities, requests.by(c)), errors)
      return result.errors.length === 0
        ? answers.data(request, [...result.success], { status: 201 })
        : failedInPart(request, result)
    },

    /** 201 with the ids of new entities, 204 if there are none, 207 if an item failed. */
    async upsert(c: HttpContext): Promise<Response> {
      const request = await requests.batch(c, { known: optionParameters, creates: true })
      const options = optionsOf(request.parameters, ['replace', 'update'])
      if (options.size > 1) throw invalidRequest('options: replace and update exclude each other')
      const update = options.has('update')
      const stated = statedBy(c)
      const { entities, errors } = await entitiesOf(
        request,
        { nulls: update, onRead: stated?.note },
        update ? 'each' : 'last',
      )
      const upserted = await (await request.enter()).batchUpsert(entities, {
        update,
        by: requests.by(c),
        stated,
      })
      const result = withErrors(upserted, errors)
      if (result.errors.length > 0) return failedInPart(request, result)
      return result.created.length === 0
        ? answers.noContent(request)
        : answers.data(request, [...result.created], { status: 201 })
    },

    async update(c: HttpContext): Promise<Response> {
      const request = await requests.batch(c, { known: optionParameters })
      const noOverwrite = optionsOf(request.parameters, ['noOverwrite']).has('noOverwrite')
      const { entities, errors } = await entitiesOf(request, { nulls: true })
      const updated = await (await request.enter()).batchUpdate(entities, { noOverwrite, by: requests.by(c) })
      const result = withErrors(updated, errors)
      return result.errors.length === 0 ? answers.noContent(request) : failedInPart(request, result)
    },

    async merge(c: HttpContext): Promise<Response> {
      const request = await requests.batch(c, { known: localParameters })
      const { entities, errors } = await entitiesOf(request, { merging: true })
      const result = withErrors(await (await request.enter()).batchMerge(entities, requests.by(c)), errors)
      return result.errors.length === 0 ? answers.noContent(request) : failedInPart(request, result)
    },

    async remove(c: HttpContext): Promise<Response> {
      const request = await requests.batch(c, { known: localParameters })
      const ids: string[] = []
      const errors: BatchItemError[] = []
      for (let index = 0; index < request.items.length; index++) {
        await request.items.yieldIfDue()
        const { json } = request.items.at(index)
        try {
          ids.push(checkUri(json, `[${index}]`))
        } catch (error) {
          errors.push({ entityId: nameOf(json), error })
        }
      }
      const result = withErrors(await (await request.enter()).batchDelete(ids, requests.by(c)), errors)
      return result.errors.length === 0 ? answers.noContent(request) : failedInPart(request, result)
    },
  })
}

/** Statements of the sending gateway about the items; undefined if it makes none. */
function statedBy(c: HttpContext) {
  const words = statedIn(headerOf(c, statedHeader))
  if (words.size === 0) return undefined
  const times = new WeakMap<Entity, WrittenTimes>()
  return {
    types: words.has('types'),
    written: (entity: Entity) => times.get(entity),
    note(entity: Entity, { json, context }: { readonly json: Json; readonly context: Context }): void {
      if (words.has('times')) times.set(entity, writtenTimes(json, context))
    },
  }
}

interface ReadOptions extends ParseOptions {
  /** Called with each parsed entity and the item it was parsed from. */
  readonly onRead?: ((entity: Entity, item: Extract<BatchItem, { context: Context }>) => void) | undefined
}

interface Entities {
  readonly entities: ItemSource<Entity>
  readonly errors: readonly BatchItemError[]
}

/**
 * Parses the items. Entities of a large batch are parsed again when their slice is read.
 *
 * @param wanted for repeated ids: each item, or only the last valid one, which replaces the earlier ones.
 */
async function entitiesOf(
  { items }: BatchRequest,
  options: ReadOptions = {},
  wanted: 'each' | 'last' = 'each',
): Promise<Entities> {
  const entities: (Entity | undefined)[] = []
  const ids: string[] = []
  const indexes: number[] = []
  const errors: BatchItemError[] = []
  const read = (item: BatchItem): Entity => {
    if ('error' in item) throw item.error
    const entity = parseEntity(item.json, item.context, options)
    options.onRead?.(entity, item)
    return entity
  }
  for (let index = 0; index < items.length; index++) {
    await items.yieldIfDue()
    const item = items.at(index)
    try {
      const entity = read(item)
      entities.push(items.isLarge ? undefined : entity)
      ids.push(entity.id)
      indexes.push(index)
    } catch (error) {
      errors.push({ entityId: nameOf(item.json), error: atItem(index, error) })
    }
  }
  const last = wanted === 'last' ? new Map(ids.map((id, n) => [id, n])) : undefined
  const meant = ids.flatMap((id, n) => ((last?.get(id) ?? n) === n ? [n] : []))
  const slice = async (from: number, to: number): Promise<readonly Entity[]> => {
    const part: Entity[] = []
    let bytes = 0
    for (const n of meant.slice(from, to)) {
      bytes += items.bytesAt(indexes[n]!)
      if (bytes > limits.batchSliceBytes.value && part.length > 0) break
      await items.yieldIfDue()
      part.push(entities[n] ?? read(items.at(indexes[n]!)))
    }
    return part
  }
  return { entities: { length: meant.length, slice }, errors }
}

/** Prefixes an error with the index of its item, since an invalid item may have no id. */
function atItem(index: number, error: unknown): unknown {
  if (!(error instanceof GatewayError)) return error
  const { code, message, details, cause } = error
  const { field } = details
  const place = `[${index}]`
  const text =
    field === 'body'
      ? message.replace('body', place)
      : `${place}${field === undefined ? ': ' : '.'}${message}`
  return new GatewayError(code, text, details, cause)
}

/** The id that an invalid item states; empty if none. */
function nameOf(json: Json): string {
  const id = isObject(json) ? (json['id'] ?? json['@id']) : json
  return typeof id === 'string' ? id : ''
}

function withErrors(result: BatchResult, errors: readonly BatchItemError[]): BatchResult {
  return errors.length === 0 ? result : { ...result, errors: [...errors, ...result.errors] }
}
