/**
 * Sends the items of a batch to a source that offers only operations on single entities (GS CIM 009, 5.6.7 to
 * 5.6.10). Each item is one request; a few are sent at a time. An upsert creates the entity; if it exists, it
 * is replaced or extended.
 */
import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import type { Json } from '#contract'
import type { SourceRequest } from '#federation/source-form.ts'
import type { Requester, Sources } from '#federation/sources.ts'
import { type PartOutcome, sendPart } from '#federation/writing.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { offers, type SourceOperation } from '#ngsi-ld/federation/registration-operations.ts'

/** The single operations that replace a batch operation; the path may contain options=update. */
function singlesOf(operation: SourceOperation, path: string): readonly SourceOperation[] {
  switch (operation) {
    case 'createBatch':
      return ['createEntity']
    case 'upsertBatch':
      return ['createEntity', /[?&=,]update\b/.test(path) ? 'appendAttrs' : 'replaceEntity']
    case 'updateBatch':
      return ['appendAttrs']
    case 'mergeBatch':
      return ['mergeEntity']
    case 'deleteBatch':
      return ['deleteEntity']
    default:
      return []
  }
}

/** Whether a source can carry out a batch operation entity by entity. */
export function offersSingly(registration: Registration, operation: SourceOperation, path: string): boolean {
  const singles = singlesOf(operation, path)
  return singles.length > 0 && singles.every((one) => offers(registration, one))
}

/** Items of one batch for one source. */
export interface SingleWrites {
  readonly registration: Registration
  readonly isProxied: boolean
  readonly operation: SourceOperation
  /** Path and query of the batch request. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly items: readonly { readonly id: string; readonly json: Json; readonly context: Context }[]
}

/**
 * Sends the items and returns the outcomes in the same order. Items of the same entity are sent one after the
 * other.
 */
export async function sendSingly(
  sources: Sources,
  requester: Requester,
  { registration, isProxied, operation, path, headers, items }: SingleWrites,
): Promise<readonly PartOutcome[]> {
  const takeTurn = createSemaphore(limits.sourceItemsAtOnce.value)
  const [, query = ''] = path.split('?')
  const part = { registration, isProxied, isOffered: true }
  const send = (
    one: SourceOperation,
    { id, json, context }: SingleWrites['items'][number],
  ): Promise<PartOutcome> =>
    sendPart(sources, requester, { part, request: requestOf(one, { id, json, context, query, headers }) })
  const last = new Map<string, Promise<unknown>>()
  return Promise.all(
    items.map((item) => {
      const before = last.get(item.id)
      const sent = (async () => {
        await before
        return takeTurn(async () => {
          const [first, second] = singlesOf(operation, path) as [SourceOperation, SourceOperation?]
          const outcome = await send(first, item)
          return outcome.status === 409 && second !== undefined ? send(second, item) : outcome
        })
      })()
      last.set(item.id, sent)
      return sent
    }),
  )
}

interface SingleRequest {
  readonly id: string
  readonly json: Json
  readonly context: Context
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
}

const entities = '/ngsi-ld/v1/entities'

function requestOf(operation: SourceOperation, one: SingleRequest): SourceRequest {
  const { id, json, context, query, headers } = one
  const path = `${entities}/${encodeURIComponent(id)}`
  const common = { headers, contexts: [context] as const }
  const body = JSON.stringify(json)
  switch (operation) {
    case 'createEntity':
      return { ...common, method: 'POST', path: entities, body }
    case 'appendAttrs': {
      const isKeeping = query.includes('noOverwrite')
      return {
        ...common,
        method: 'POST',
        path: `${path}/attrs${isKeeping ? '?options=noOverwrite' : ''}`,
        body,
      }
    }
    case 'mergeEntity':
      return { ...common, method: 'PATCH', path, body }
    case 'deleteEntity': {
      const { 'content-type': _, ...plain } = headers
      return { ...common, headers: plain, method: 'DELETE', path }
    }
    default:
      return { ...common, method: 'PUT', path, body }
  }
}
