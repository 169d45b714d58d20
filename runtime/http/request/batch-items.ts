/**
 * The items of a batch, each with its context. The items of a large batch are checked one by one before any
 * is written, and parsed again when they are written. Memory then holds the bytes of the body and a few
 * parsed items.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield, type YieldIfDue } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import type { Context } from '#ngsi-ld/context/context.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type BatchBody, parseJson } from './body.ts'

/** An item of a body with its context. */
interface Item {
  readonly json: Json
  readonly context: Context
}

/** An item, or the reason why its context is unavailable. */
export type BatchItem = Item | { readonly json: Json; readonly error: unknown }

export interface BatchItems extends Iterable<BatchItem> {
  readonly length: number
  /** Whether items are parsed on each access. */
  readonly isLarge: boolean
  at(index: number): BatchItem
  /** Bytes of an item that is parsed on each access; otherwise 0. */
  bytesAt(index: number): number
  /** Await it between items: it yields to other work when the time slice is used up. */
  readonly yieldIfDue: YieldIfDue
}

/**
 * @param amended changes an item before it is used.
 *
 * @throws GatewayError if the whole body is refused.
 */
export async function readItems(
  body: BatchBody,
  contextOf: (json: Json) => Context | Promise<Context>,
  amended: (json: Json) => Json,
): Promise<BatchItems> {
  const { length, json } = accessTo(body)
  const yieldIfDue = createYield(() => performance.now(), limits.queryTurnMs.value)
  const contexts: (Context | { readonly error: unknown })[] = []
  const parsed: Json[] = []
  for (let index = 0; index < length; index++) {
    const item = json(index)
    if (item === null) throw badRequestData('has an item that is null', 'body')
    if (!('texts' in body)) parsed.push(item)
    else await yieldIfDue()
    try {
      const context = contextOf(item)
      contexts.push(context instanceof Promise ? await context : context)
    } catch (error) {
      contexts.push({ error })
    }
  }
  const at = (index: number): BatchItem => {
    const context = contexts[index]!
    const item = amended(parsed[index] ?? json(index))
    return 'error' in context ? { json: item, error: context.error } : { json: item, context }
  }
  return Object.freeze({
    length,
    isLarge: 'texts' in body,
    at,
    bytesAt: (index) => ('texts' in body ? body.texts.text(index).length : 0),
    yieldIfDue,
    *[Symbol.iterator]() {
      for (let index = 0; index < length; index++) yield at(index)
    },
  } satisfies BatchItems)
}

function accessTo(body: BatchBody): { readonly length: number; readonly json: (index: number) => Json } {
  if ('texts' in body) {
    const { texts } = body
    return { length: texts.length, json: (index) => parseJson(texts.text(index)) }
  }
  const { json } = body
  if (!Array.isArray(json)) throw badRequestData('must be an array', 'body')
  if (json.length === 0) throw badRequestData('is empty', 'body')
  if (json.length > limits.batchEntitiesMax.value) {
    throw new GatewayError('http.body-too-large', `more than ${limits.batchEntitiesMax.value} items`)
  }
  return { length: json.length, json: (index) => json[index] as Json }
}
