/**
 * Feeds changes of this gateway's own broker to subscriptions. While there are subscriptions, one follower of
 * the change log adds ids to the queues of the subscriptions concerned. A queue holds each entity id once, so
 * a slow client receives the latest state and not every step. If the queue exceeds its limit, the
 * subscription ends with an error, because the missed changes cannot be sent. Does not read entities.
 */
import { GraphQLError } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { ChangeBatch, ChangesPort } from '#contract'
import { type Feed, fellBehind, type Waiting } from './subscribers.ts'

export interface LiveFeed extends Feed {
  /** Number of open subscriptions. */
  count(): number
  close(): void
}

interface Queue {
  readonly ids: ReadonlySet<string> | undefined
  /** Undefined for a subscription to deletions. */
  readonly types?: ReadonlySet<string>
  push(id: string): void
  fail(error: GraphQLError): void
}

/** @param changes undefined if the search backend is another broker, whose log cannot be followed. */
export function createFeed(changes: Pick<ChangesPort, 'position' | 'follow'> | undefined): LiveFeed {
  const queues = new Set<Queue>()
  let following: { close(): void } | undefined

  const take = (batch: ChangeBatch): void => {
    for (const queue of queues) {
      if (queue.types === undefined) for (const id of batch.deleted) offer(queue, id)
      else offerChanged(queue, queue.types, batch)
    }
  }

  function open(wanted: Pick<Queue, 'ids'> & { readonly types?: ReadonlySet<string> }): Waiting {
    if (changes === undefined) {
      throw refuse('Subscriptions require this gateway as the search backend; the backend is another broker')
    }
    if (queues.size >= limits.searchSubscriptionsMax.value) {
      throw refuse(`Too many subscriptions (${queues.size}); retry later`)
    }
    const { queue, waiting } = createQueue(wanted, () => {
      queues.delete(queue)
      if (queues.size > 0) return
      following?.close()
      following = undefined
    })
    queues.add(queue)
    following ??= changes.follow(changes.position(), {
      observes: 'newest',
      take,
      readAnew() {
        for (const one of queues) one.fail(fellBehind())
        return changes.position()
      },
    })
    return waiting
  }

  return Object.freeze({
    changes: (wanted) => open({ types: wanted.types, ids: wanted.ids }),
    deletions: (ids) => open({ ids }),
    count: () => queues.size,
    close() {
      for (const one of queues) one.fail(refuse('The gateway is shutting down'))
      following?.close()
    },
  } satisfies LiveFeed)
}

/** The batch does not include the type of an observed entity; the subscription's query checks it. */
function offerChanged(queue: Queue, types: ReadonlySet<string>, { changed, observed }: ChangeBatch): void {
  for (const one of changed) if (one.types.some((type) => types.has(type))) offer(queue, one.id)
  for (const { id } of observed) offer(queue, id)
}

function offer(queue: Queue, id: string): void {
  if (queue.ids === undefined || queue.ids.has(id)) queue.push(id)
}

function createQueue(
  wanted: { readonly ids: ReadonlySet<string> | undefined; readonly types?: ReadonlySet<string> },
  onClosed: () => void,
): { readonly queue: Queue; readonly waiting: Waiting } {
  const ids = new Set<string>()
  let failure: GraphQLError | undefined
  let isClosed = false
  let wake: () => void = () => undefined
  const close = (): void => {
    isClosed = true
    onClosed()
    wake()
  }
  const fail = (error: GraphQLError): void => {
    failure ??= error
    ids.clear()
    close()
  }
  const queue: Queue = {
    ...wanted,
    push(id) {
      if (isClosed) return
      ids.add(id)
      if (ids.size > limits.searchWaitingMax.value) fail(fellBehind())
      else wake()
    },
    fail,
  }
  const waiting: Waiting = {
    async take(most) {
      while (ids.size === 0 && !isClosed) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      if (failure !== undefined) throw failure
      if (isClosed) return undefined
      const some = [...ids].slice(0, most)
      for (const id of some) ids.delete(id)
      return some
    },
    close,
  }
  return { queue, waiting }
}

const refuse = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'UNAVAILABLE' } })
