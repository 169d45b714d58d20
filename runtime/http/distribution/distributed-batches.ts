/**
 * Batch operations that involve context sources (GS CIM 009, 5.6.7 to 5.6.10, 5.6.20). Each item is split
 * like a write of one entity, each source receives its items in one request, and the route processes the
 * rest. A large batch is processed in slices, in order; its local items are then committed in several groups
 * with different commit times.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { Json } from '#contract'
import { type PartOutcome, sendPart } from '#federation/writing.ts'
import type { BatchItem, BatchItems } from '#http/request/batch-items.ts'
import type { HttpContext } from '#http/request/body.ts'
import { anyParameter, type Distributed } from '#http/request/distributed-request.ts'
import type { BatchRequest } from '#http/request/request.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import {
  bodyWith,
  datasetsIn,
  namesIn,
  splitWrite,
  type WritePart,
} from '#ngsi-ld/federation/distribution.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { offers, type SourceOperation } from '#ngsi-ld/federation/registration-operations.ts'
import { isObject, type JsonObject, listOf, textsOf } from '#ngsi-ld/values/json.ts'
import { isUri } from '#ngsi-ld/values/names.ts'
import { type DistributedWritePorts, headersOf } from './distributed-writes.ts'
import { offersSingly, sendSingly } from './single-writes.ts'

interface Batch {
  readonly operation: SourceOperation
  readonly local: (c: HttpContext) => Response | Promise<Response>
}

/** The items for one source, or the items that stay local. */
interface Share {
  readonly registration: Registration
  readonly isProxied: boolean
  readonly isOffered: boolean
  readonly items: Json[]
  readonly ids: string[]
  /** The context of each item. */
  readonly contexts: [Context, ...Context[]]
}

/** The result of one share. */
interface Result {
  /** The registration whose source did it; empty for local results. */
  readonly part: string
  readonly success: readonly string[]
  readonly created: readonly string[]
  readonly errors: readonly (JsonObject & { readonly entityId: string })[]
}

/** The types, attributes and datasets that an item names; the types of the stored entity if it names none. */
function namesOf(json: Json, expand: Context['expand'], stored: EntityView | undefined) {
  const body = isObject(json) ? json : {}
  const declared = body['type'] ?? body['@type'] ?? stored?.entity().type
  return {
    types: declared === undefined ? undefined : textsOf(declared).map((name) => expand(name)),
    names: namesIn(body, expand),
    datasetsOf: datasetsIn(body, expand),
  }
}

export function createDistributedBatches({
  bodies,
  requests,
  answers,
  problems,
  sources,
}: DistributedWritePorts) {
  function sharesOf(
    { broker, registrations, path }: Distributed,
    items: Iterable<BatchItem>,
    operation: SourceOperation,
  ) {
    const isOffered = (registration: Registration): boolean =>
      offers(registration, operation) || offersSingly(registration, operation, path)
    const shares = new Map<string, Share>()
    const here: { items: Json[]; ids: string[] } = { items: [], ids: [] }
    const add = (part: WritePart, item: Json, id: string, context: Context): void => {
      const { registration, isProxied, isOffered } = part
      const known = shares.get(registration.id)
      const share = known ?? { registration, isProxied, isOffered, items: [], ids: [], contexts: [context] }
      if (known !== undefined) share.contexts.push(context)
      share.items.push(item)
      share.ids.push(id)
      shares.set(registration.id, share)
    }
    for (const item of items) {
      const { json } = item
      const id = isObject(json) ? (json['id'] ?? json['@id']) : json
      if ('error' in item || typeof id !== 'string' || !isUri(id)) {
        here.items.push(json)
        here.ids.push(typeof id === 'string' ? id : '')
        continue
      }
      const { expand } = item.context
      const target = { operation, id, ...namesOf(json, expand, broker.retrieve(id)), isOffered }
      const { parts, local, isIncluded } = splitWrite(registrations, target)
      const reduce = (part: Pick<WritePart, 'attributes' | 'isIncluded'>): Json =>
        isObject(json) ? bodyWith(json, part, expand) : json
      for (const part of parts) add(part, reduce(part), id, item.context)
      if (local === 'none') continue
      here.items.push(reduce({ attributes: local, ...(isIncluded === undefined ? {} : { isIncluded }) }))
      here.ids.push(id)
    }
    return { shares: [...shares.values()], here }
  }

  function shareResult(
    { ids, registration }: Pick<Share, 'ids' | 'registration'>,
    outcome: PartOutcome,
  ): Result {
    const { status, body, error } = outcome
    if (error !== undefined || (status === 207 && !isObject(body))) {
      const failure = error ?? new GatewayError('peer.unavailable', `${registration.id} answered ${status}`)
      const problem: JsonObject = { ...problems.body(failure) }
      const errors = ids.map((entityId) => ({ entityId, error: problem, registrationId: registration.id }))
      return { part: registration.id, success: [], created: [], errors }
    }
    const result = resultOf(status, body, ids)
    const errors = result.errors.map((one) => ({ ...one, registrationId: registration.id }))
    return { part: registration.id, ...result, errors }
  }

  /** Processes a slice of a batch, locally and at sources. */
  async function run(
    { c, requester, path }: Distributed,
    { shares, here }: ReturnType<typeof sharesOf>,
    { operation, local }: Batch,
  ): Promise<readonly Result[]> {
    const headers = headersOf(c, true)
    const sent = Promise.all(
      shares.map(async (share): Promise<readonly Result[]> => {
        const { registration, isOffered, contexts } = share
        if (isOffered && !offers(registration, operation)) {
          const items = share.items.map((json, i) => ({ id: share.ids[i]!, json, context: contexts[i]! }))
          const outcomes = await sendSingly(sources, requester, { ...share, operation, path, headers, items })
          return outcomes.map((outcome, i) => shareResult({ registration, ids: [share.ids[i]!] }, outcome))
        }
        const body = JSON.stringify(share.items)
        const request = { method: 'POST', path, headers, body, contexts }
        return [shareResult(share, await sendPart(sources, requester, { part: share, request }))]
      }),
    )
    const results: Result[] = []
    if (here.items.length > 0) {
      c.env = { ...c.env, body: Buffer.from(JSON.stringify(here.items)) }
      const answer = await local(c)
      const body = answer.status === 204 ? undefined : ((await answer.clone().json()) as Json)
      results.push({ part: '', ...resultOf(answer.status, body, here.ids) })
    }
    results.push(...(await sent).flat())
    return results
  }

  /** Whether a source takes part in any item. */
  async function isShared(
    request: Distributed,
    items: BatchItems,
    operation: SourceOperation,
  ): Promise<boolean> {
    for (let index = 0; index < items.length; index++) {
      await items.yieldIfDue()
      if (sharesOf(request, [items.at(index)], operation).shares.length > 0) return true
    }
    return false
  }

  return Object.freeze({
    async batch(request: Distributed, { operation, local }: Batch): Promise<Response> {
      const { c } = request
      c.env = { ...c.env, body: await bodies.raw(c, limits.batchBytesMax.value) }
      const parsed = await requests.batch(c, { known: anyParameter })
      if (!parsed.items.isLarge) {
        const split = sharesOf(request, parsed.items, operation)
        if (split.shares.length === 0) return local(c)
        return answer(parsed, operation, await run(request, split, { operation, local }))
      }
      if (!(await isShared(request, parsed.items, operation))) return local(c)
      const results: Result[] = []
      for (const slice of slicesOf(parsed.items)) {
        results.push(...(await run(request, sharesOf(request, slice, operation), { operation, local })))
      }
      return answer(parsed, operation, results)
    },
  })

  function answer(parsed: BatchRequest, operation: SourceOperation, results: readonly Result[]): Response {
    const fine = new Set(results.flatMap(({ success }) => success))
    const keyOf = (part: string, { entityId }: JsonObject): string => `${part} ${entityId as string}`
    const done = new Set(
      results.flatMap(({ part, success }) => success.map((entityId) => keyOf(part, { entityId }))),
    )
    // The entity may exist only at a source, so a local 404 is not an error.
    const isForgiven = ({ part }: Result, one: JsonObject): boolean =>
      operation !== 'createBatch' &&
      part === '' &&
      fine.has(one['entityId'] as string) &&
      !done.has(keyOf(part, one)) &&
      isObject(one['error']) &&
      one['error']['status'] === 404
    const kept = results.flatMap((result) =>
      result.errors.filter((one) => !isForgiven(result, one)).map((one) => ({ one, part: result.part })),
    )
    const errors = kept.map(({ one }) => one)
    // A failed item does not undo the success of another item of the same entity in the same share.
    const failed = new Set(
      kept.filter(({ one, part }) => !done.has(keyOf(part, one))).map(({ one }) => one['entityId']),
    )
    const success = [...fine].filter((id) => !failed.has(id))
    if (errors.length > 0) return answers.json({ success, errors }, 207)
    if (operation === 'createBatch') return answers.json(success, 201)
    const created = new Set(results.flatMap((result) => result.created))
    return operation === 'upsertBatch' && created.size > 0
      ? answers.json([...created], 201)
      : answers.noContent(parsed)
  }
}

function resultOf(
  status: number,
  body: Json | undefined,
  ids: readonly string[],
): Pick<Result, 'success' | 'created' | 'errors'> {
  if (status === 207 && isObject(body)) {
    const errors = listOf<Json>(body['errors'] ?? [])
      .filter(isObject)
      .map((one) => ({ ...one, entityId: textsOf(one['entityId'] ?? '')[0] ?? '' }))
    const failed = new Set(errors.map(({ entityId }) => entityId))
    const named = new Set(textsOf(body['success'] ?? []))
    return { success: ids.filter((id) => named.has(id) || !failed.has(id)), created: [], errors }
  }
  const named = Array.isArray(body) ? (body as readonly Json[]).filter((id) => typeof id === 'string') : []
  // The response to a single creation is 201 without a list of ids.
  const created = status === 201 && body === undefined ? ids : named
  return { success: ids, created, errors: [] }
}

/** Splits a large batch into slices that sources accept and that need little memory. */
function* slicesOf(items: BatchItems): Generator<readonly BatchItem[]> {
  let slice: BatchItem[] = []
  let characters = 0
  for (const item of items) {
    const size = JSON.stringify(item.json).length
    if (slice.length > 0 && characters + size > limits.batchPartCharacters.value) {
      yield slice
      slice = []
      characters = 0
    }
    slice.push(item)
    characters += size
  }
  yield slice
}
