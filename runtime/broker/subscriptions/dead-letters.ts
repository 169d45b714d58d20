/**
 * Dead letters: deliveries that were given up, for an operator to list, retry or drop. A retried one is
 * queued again in the same outbox, as it was rendered. It waits behind other deliveries, and becomes a dead
 * letter again if refused again.
 */
import type { Door } from '#broker/commit/door.ts'
import { conflict } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { DeadLetter, DeadLetterHead, Deliveries, Delivery } from '#store/tables/delivery-rows.ts'
import type { Matcher, Registered } from './matcher.ts'

export interface DeadLettersPorts {
  readonly door: Door
  readonly rows: Deliveries
  readonly matcher: Pick<Matcher, 'deliver'>
  /** The subscription with a number, reduced to what deliveries need; undefined if it was deleted. */
  readonly subscribed: (
    i: number,
  ) => (Pick<Registered, 'i' | 'endpoint'> & { readonly id: string }) | undefined
}

/** A dead letter. */
export interface DeadLetterView extends DeadLetterHead {
  /** Undefined if it was deleted. */
  readonly subscription: string | undefined
}

export interface DeadLetters {
  count(): number
  /** Newest first. */
  list(page: { limit: number; offset: number }): readonly DeadLetterView[]
  /** With its body; undefined if there is none with this number. */
  get(d: number): (DeadLetterView & Pick<DeadLetter, 'body'>) | undefined
  /** Queues it again. False if there is none. @throws ngsi-ld.conflict if its subscription was deleted. */
  retry(d: number): Promise<boolean>
  drop(d: number): Promise<boolean>
}

export function createDeadLetters({ door, rows, matcher, subscribed }: DeadLettersPorts): DeadLetters {
  const seen = <T extends DeadLetterHead>(letter: T) => ({
    ...letter,
    subscription: subscribed(letter.sub)?.id,
  })
  return Object.freeze({
    count: rows.deadLetterCount,
    list: ({ limit, offset }) => rows.deadLetterHeads(limit, offset).map(seen),
    get(d) {
      const letter = rows.deadLetter(d)
      return letter && seen(letter)
    },
    retry: (d) =>
      door.commit((stage) => {
        const letter = rows.deadLetter(d)
        if (letter === undefined || stage.scratch.has(`dead letter ${d}`)) return false
        const subscription = subscribed(letter.sub)
        if (subscription === undefined)
          throw conflict('the subscription was deleted; the dead letter can only be dropped')
        stage.scratch.set(`dead letter ${d}`, true)
        stage.write('dead_letter.delete', d)
        matcher.deliver(stage, subscription, contentOf(letter))
        return true
      }),
    drop: (d) =>
      door.commit(
        (stage) => {
          if (rows.deadLetter(d) === undefined) return false
          stage.write('dead_letter.delete', d)
          return true
        },
        { isSparing: true },
      ),
  } satisfies DeadLetters)
}

/** The body of a delivery that is sent as it was rendered before. */
interface Rendered {
  readonly again: string
}

/** The rendered body of a retried delivery; undefined if it must still be rendered. */
export function renderedOf({ body }: Pick<Delivery, 'body'>): string | undefined {
  return body?.startsWith('{"again":') === true ? (JSON.parse(body) as Rendered).again : undefined
}

type DeliveryContent = Pick<Delivery, 'entity' | 'stream' | 't' | 'value' | 'body'>

function contentOf({ entity, reason, body }: DeadLetter): DeliveryContent {
  const plain = { entity, stream: null, t: null, value: null }
  if (!reason.startsWith('could not be rendered'))
    return { ...plain, body: JSON.stringify({ again: body } satisfies Rendered) }
  // A delivery that was never rendered keeps its original content: an observation as a whole, others as their
  // body.
  const unrendered = JSON.parse(body) as Partial<Delivery>
  if (typeof unrendered.stream !== 'number') return { ...plain, body }
  return {
    entity,
    stream: unrendered.stream,
    t: unrendered.t ?? null,
    value: unrendered.value ?? null,
    body: null,
  }
}
