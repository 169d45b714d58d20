/**
 * Subscriptions: each waits for ids that changed, asks which of these are as its criteria say, and tells them one by one. What
 * waits is one id per entity, so that a slow client gets the newest state and not every step; beyond a ceiling of entities the
 * subscription ends with an error, since what it missed cannot be told any more.
 */
import { GraphQLError, type GraphQLField, type GraphQLResolveInfo, type GraphQLSchema } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { Model } from '#plugins/search/schema/model.ts'
import type { Given } from '#plugins/search/schema/query-criteria.ts'
import { criteriaOf, type Operation, rootTypeName } from './resolvers.ts'

/** What changed, for one subscription. */
export interface Waiting {
  /** Ids that changed since the last call, at most so many; waits for the first. Undefined when there will be no more. */
  take(most: number): Promise<readonly string[] | undefined>
  close(): void
}

/** Where changes come from. */
export interface Feed {
  /** @throws GraphQLError where there is none, or too many wait. */
  changes(wanted: {
    readonly types: ReadonlySet<string>
    readonly ids?: ReadonlySet<string> | undefined
  }): Waiting
  deletions(ids: ReadonlySet<string> | undefined): Waiting
}

/** What the operation of a subscription has beyond that of a query. */
export interface LiveOperation extends Operation {
  readonly feed: Feed
  /** Forgets what was read: the next event reads anew. */
  renew(): void
}

/** Gives the fields of Subscription their sources. */
export function liveFields(schema: GraphQLSchema, model: Model): void {
  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    const live = field as GraphQLField<unknown, LiveOperation>
    live.subscribe = (_source, given: Given, operation, info) =>
      field.name === 'deletions' ? deletions(given, operation) : changed(model, given, operation, info)
    live.resolve = (event) => {
      if (event instanceof GraphQLError) throw event
      return event
    }
  }
}

function changed(
  model: Model,
  given: Given,
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

function deletions(given: Given, { feed }: LiveOperation): AsyncIterable<unknown> {
  const { id } = given
  const waiting = feed.deletions(typeof id === 'string' ? new Set([id]) : undefined)
  return events(waiting, limits.searchIdsPerRead.value, (ids) => Promise.resolve(ids))
}

/** An iterator that can be ended while it waits, which a generator cannot. */
function events(
  waiting: Waiting,
  most: number,
  look: (ids: readonly string[]) => Promise<readonly unknown[]>,
  renew: () => void = () => undefined,
): AsyncIterable<unknown> {
  let ready: unknown[] = []
  let isOver = false
  const next = async (): Promise<IteratorResult<unknown>> => {
    try {
      while (ready.length === 0) {
        const ids = isOver ? undefined : await waiting.take(most)
        if (ids === undefined) return { done: true, value: undefined }
        ready = [...(await look(ids))]
      }
    } catch (error) {
      // The last thing told: why there is nothing more.
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
    `More than ${limits.searchWaitingMax.value} changed entities waited for this client; subscribe again and read anew`,
    { extensions: { code: 'FELL_BEHIND' } },
  )
