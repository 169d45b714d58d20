/**
 * Subscriptions. Each waits for changed ids, queries which of them match its criteria, and sends the matches
 * one by one. The queues are in feed.ts.
 */
import { GraphQLError, type GraphQLField, type GraphQLResolveInfo, type GraphQLSchema } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { Model } from '#plugins/search/schema/model.ts'
import type { GivenArguments } from '#plugins/search/schema/query-criteria.ts'
import { criteriaOf, type RunningOperation, rootTypeName } from './resolvers.ts'

/** Queued changes of one subscription. */
export interface Waiting {
  /** Up to `most` changed ids since the last call; waits for the first. Undefined after the end. */
  take(most: number): Promise<readonly string[] | undefined>
  close(): void
}

/** The source of changes. */
export interface Feed {
  /** @throws GraphQLError if there is no source, or too many subscriptions. */
  changes(wanted: {
    readonly types: ReadonlySet<string>
    readonly ids?: ReadonlySet<string> | undefined
  }): Waiting
  deletions(ids: ReadonlySet<string> | undefined): Waiting
}

/** The additional state of a subscription's operation. */
export interface LiveOperation extends RunningOperation {
  readonly feed: Feed
  /** Discards cached reads; the next event reads again. */
  renew(): void
}

/** Sets the event sources of the fields of Subscription. */
export function liveFields(schema: GraphQLSchema, model: Model): void {
  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    const live = field as GraphQLField<unknown, LiveOperation>
    live.subscribe = (_source, given: GivenArguments, operation, info) =>
      field.name === 'deletions' ? deletions(given, operation) : changed(model, given, operation, info)
    live.resolve = (event) => {
      if (event instanceof GraphQLError) throw event
      return event
    }
  }
}

function changed(
  model: Model,
  given: GivenArguments,
  operation: LiveOperation,
  info: GraphQLResolveInfo,
): AsyncIterable<unknown> {
  const type = model.types.get(rootTypeName(info))!
  const criteria = criteriaOf(model, type, given, info)
  const types = new Set(model.kindsOf(type.name).flatMap((kind) => kind.types))
  const ids = criteria.ids === undefined ? undefined : new Set(criteria.ids)
  const waiting = operation.feed.changes({ types, ids })
  const most = limits.searchIdsPerRead.value
  return events(
    waiting,
    most,
    async (some) => {
      operation.renew()
      return operation.selection.select({ ...criteria, ids: some }, { offset: 0, limit: most })
    },
    operation.renew,
  )
}

function deletions(given: GivenArguments, { feed }: LiveOperation): AsyncIterable<unknown> {
  const { id } = given
  const waiting = feed.deletions(typeof id === 'string' ? new Set([id]) : undefined)
  return events(waiting, limits.searchIdsPerRead.value, (ids) => Promise.resolve(ids))
}

/** An iterator that can end while it waits, which a generator cannot. */
function events(
  waiting: Waiting,
  most: number,
  query: (ids: readonly string[]) => Promise<readonly unknown[]>,
  renew: () => void = () => undefined,
): AsyncIterable<unknown> {
  let ready: unknown[] = []
  let isOver = false
  const next = async (): Promise<IteratorResult<unknown>> => {
    try {
      while (ready.length === 0) {
        const ids = isOver ? undefined : await waiting.take(most)
        if (ids === undefined) return { done: true, value: undefined }
        ready = [...(await query(ids))]
      }
    } catch (error) {
      // The last event is the reason for the end.
      isOver = true
      waiting.close()
      return { done: false, value: error instanceof GraphQLError ? error : new GraphQLError(String(error)) }
    }
    renew()
    return { done: false, value: ready.shift() }
  }
  const end = (): Promise<IteratorResult<unknown>> => {
    waiting.close()
    return Promise.resolve({ done: true, value: undefined })
  }
  const iterator = { next, return: end, throw: end, [Symbol.asyncIterator]: () => iterator }
  return iterator
}

export const fellBehind = (): GraphQLError =>
  new GraphQLError(
    `More than ${limits.searchWaitingMax.value} changed entities were queued for this client; subscribe again and reload`,
    { extensions: { code: 'FELL_BEHIND' } },
  )
