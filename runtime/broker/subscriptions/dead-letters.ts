/**
 * Notifications that were given up, as an operator has them: looked at, sent again, or dropped. What is sent again is
 * owed anew, through the same outbox, as it was rendered; so it stands in line with what else is owed, and is
 * given up again if it is refused again.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { DeadLetter, DeadLetterHead, Deliveries, Delivery } from '#store/tables/delivery-rows.ts'
import type { Matcher, Registered } from './matcher.ts'

export interface DeadLettersPorts {
  readonly door: Door
  readonly rows: Deliveries
  readonly matcher: Pick<Matcher, 'owe'>
  /** The subscription of a number, as far as deliveries go; undefined when it is gone. */
  readonly subscribed: (
    i: number,
  ) => (Pick<Registered, 'i' | 'endpoint'> & { readonly id: string }) | undefined
}

/** A notification that was given up. */
export interface DeadLetterView extends DeadLetterHead {
  /** Undefined where it is gone. */
  readonly subscription: string | undefined
}

export interface DeadLetters {
  count(): number
  /** The newest first. */
  list(page: { limit: number; offset: number }): readonly DeadLetterView[]
  /** With its body; undefined when there is none of this number. */
  get(d: number): (DeadLetterView & Pick<DeadLetter, 'body'>) | undefined
  /** Owes it again. False when there is none. @throws ngsi-ld.conflict when its subscription is gone. */
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
          throw new GatewayError('ngsi-ld.conflict', 'its subscription is gone; it can only be dropped')
        stage.scratch.set(`dead letter ${d}`, true)
        stage.write('dead_letter.delete', d)
        matcher.owe(stage, subscription, owedOf(letter))
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

/** What a delivery tells that is sent as it was rendered before. */
interface Again {
  readonly again: string
}

/** The body of a delivery that was rendered before; undefined where it is still to be rendered. */
export function againOf({ body }: Pick<Delivery, 'body'>): string | undefined {
  return body?.startsWith('{"again":') === true ? (JSON.parse(body) as Again).again : undefined
}

type Owed = Pick<Delivery, 'entity' | 'stream' | 't' | 'value' | 'body'>

function owedOf({ entity, reason, body }: DeadLetter): Owed {
  const plain = { entity, stream: null, t: null, value: null }
  if (!reason.startsWith('could not be rendered'))
    return { ...plain, body: JSON.stringify({ again: body } satisfies Again) }
  // What was never rendered is kept as it was owed: an observation whole, everything else as its body.
  const kept = JSON.parse(body) as Partial<Delivery>
  if (typeof kept.stream !== 'number') return { ...plain, body }
  return { entity, stream: kept.stream, t: kept.t ?? null, value: kept.value ?? null, body: null }
}
