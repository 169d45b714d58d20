/**
 * The notices that applications receive when a stream fails or recovers, and the health of a stream. Pure.
 */
import { randomUUID } from 'node:crypto'
import { propertyValue } from '#client/streams/stream-entities.ts'
import { faultTerms } from '#contract/vocabulary.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { own } from '#ngsi-ld/values/json.ts'

export type FailureReason = 'fault' | 'silence' | 'source-unreachable' | 'deleted'

/** Facts of a stream by which alternatives are found, also after it was deleted. */
export interface StreamFacts {
  /** Id of the observed property. */
  readonly property?: string | undefined
  /** Label of the observed property. */
  readonly label?: string | undefined
  /** Longitude, latitude. */
  readonly place?: readonly [number, number] | undefined
}

export interface StreamFailure {
  readonly reason: FailureReason
  readonly detail: string
  /** ISO 8601. */
  readonly at: string
}

/** An alternative whose observations are delivered while a stream fails. */
export interface Switch {
  readonly stream: string
  /** The entity that notifications have: its observation, or the stream itself. */
  readonly entity: string
}

/** A failure that the clients of a subscription were notified of. */
export interface OpenFailure extends StreamFailure {
  /** Id of the first notice. */
  readonly id: string
  /** Left out if the search was complete; else its alternatives are searched again. */
  readonly isSearching?: true | undefined
  /** Undefined if the subscription does not switch, or has no alternative. */
  readonly switchedTo?: Switch | undefined
  /** Whether the virtual sensor of the failed one was among the alternatives. */
  readonly isReplaced: boolean
}

export interface Alternative {
  readonly stream: string
  readonly sensor: string
  readonly observedProperty: string
  /** Metres; null if a place is unknown. */
  readonly distance: number | null
  /** Null if the ranking does not know the stream. */
  readonly rankScore: number | null
  readonly isVirtual: boolean
}

/** `works`, `fails`, or `unsure` while a fault heals: then nothing changes. */
export type StreamHealth =
  | { readonly kind: 'works'; readonly detail: string }
  | { readonly kind: 'unsure' }
  | { readonly kind: 'fails'; readonly at: string }

/** The health of a stream that exists, by its `selvedge:state`. A stream without a state works. */
export function healthOf(stream: Entity, now: number): StreamHealth {
  const state = propertyValue(stream, faultTerms.state)
  if (state === 'recovering') return { kind: 'unsure' }
  if (state !== 'fault') return { kind: 'works', detail: typeof state === 'string' ? state : 'available' }
  const [instance] = instancesOf(stream, faultTerms.state)
  const observedAt = instance && own(instance, 'observedAt')
  return { kind: 'fails', at: typeof observedAt === 'string' ? observedAt : msToDateTime(now) }
}

interface NoticeOf {
  readonly subscription: string
  readonly stream: string
  readonly sensor: string
}

export const noticeId = (type: 'StreamFailure' | 'StreamRecovery'): string =>
  `urn:ngsi-ld:${type}:${randomUUID()}`

/** @param updates id of the first notice of the same failure, whose alternatives this one replaces. */
export const failureNotice = (
  { subscription, stream, sensor }: NoticeOf,
  { at, reason, detail }: StreamFailure,
  rest: {
    readonly id: string
    readonly alternatives: readonly Alternative[]
    readonly switchedTo: Switch | undefined
    readonly updates?: string | undefined
  },
): Buffer =>
  Buffer.from(
    JSON.stringify({
      id: rest.id,
      type: 'StreamFailure',
      subscriptionId: subscription,
      stream,
      sensor,
      at,
      reason,
      detail,
      alternatives: rest.alternatives,
      switchedTo: rest.switchedTo,
      updates: rest.updates,
    }),
  )

export const recoveryNotice = (
  { subscription, stream, sensor }: NoticeOf,
  { failure, at, detail }: { readonly failure: string; readonly at: string; readonly detail: string },
): Buffer =>
  Buffer.from(
    JSON.stringify({
      id: noticeId('StreamRecovery'),
      type: 'StreamRecovery',
      subscriptionId: subscription,
      stream,
      sensor,
      at,
      detail,
      failure,
    }),
  )
