/**
 * Changes of this gateway's own broker for subscriptions: one follower of its log while anybody subscribes, which puts ids
 * into the queues of those they concern. It reads nothing itself.
 */
import { GraphQLError } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { ChangeBatch, ChangesPort } from '#contract'
import { type Feed, fellBehind, type Waiting } from './subscribers.ts'

export interface LiveFeed extends Feed {
  /** Subscriptions that wait. */
  count(): number
  close(): void
}

interface Queue {
  readonly ids: ReadonlySet<string> | undefined
  /** Left out: deletions. */
  readonly types?: ReadonlySet<string>
  push(id: string): void
  fail(error: GraphQLError): void
}

/** @param changes undefined where what is searched is another broker, whose log is not ours to follow. */
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
      throw refuse('Subscriptions follow the log of this gateway; what is searched here is another broker')
    }
    if (queues.size >= limits.searchSubscriptionsMax.value) {
      throw refuse(`There are ${queues.size} subscriptions, which is the most`)
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
      for (const one of queues) one.fail(refuse('The gateway ends'))
      following?.close()
    },
  } satisfies LiveFeed)
}

/** Of what kind an observed entity is only the question to the broker tells. */
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
