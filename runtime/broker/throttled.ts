/**
 * Throttling of a subscription (GS CIM 009, 5.2.12 and 5.8.6): at most one notification in so many seconds. The first
 * match is sent at once. Entities that match within the window are noted here and notified together at its end, as they
 * are then, so that the last value of a window always reaches the subscriber. A restart forgets them.
 */
import type { Clock } from '#base/clock.ts'
import { toGatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import { instancesOf } from '#ngsi-ld/entity.ts'
import type { OwedChange, OwedEntity } from '#ngsi-ld/notification-data.ts'
import type { Door } from './door.ts'
import type { Matcher, Registered } from './matcher.ts'

/** By id: the newest change that cannot be read from the entity later, such as a deletion. */
export type ThrottledEntities = Map<string, OwedEntity | undefined>

/** Notes an entity. False when there is no room for it; then its match is only counted. */
export function holdEntity(throttled: ThrottledEntities, id: string, owed: OwedEntity | undefined): boolean {
  if (!throttled.has(id) && throttled.size >= limits.throttledEntitiesMax.value) return false
  const before = throttled.get(id)
  const changes = [...(before?.changes ?? []), ...(owed?.changes ?? [])]
  throttled.set(id, owed === undefined ? before : { ...owed, changes: changes.slice(-changesMax) })
  return true
}

/** Deleted attributes reported for one entity at the end of a window. */
const changesMax = 100

/** What to report of a held entity: `now` as it is, with deletions in the window; the deletion itself if it is gone. */
export function releasedEntity(
  held: OwedEntity | undefined,
  now: OwedEntity | undefined,
): OwedEntity | undefined {
  if (now === undefined) return held
  const isStillDeleted = ({ name, before: { datasetId } }: OwedChange): boolean =>
    !instancesOf(now.entity, name).some((instance) => instance.datasetId === datasetId)
  const changes = held?.isDeleted === true ? [] : (held?.changes ?? []).filter(isStillDeleted)
  return changes.length === 0 ? now : { ...now, changes }
}

export interface ThrottlingPorts {
  readonly door: Pick<Door, 'commit'>
  readonly matcher: Pick<Matcher, 'get' | 'release'>
  readonly clock: Clock
  readonly log: Log
}

/** Timers of the windows in which something was held. */
export function createThrottling({ door, matcher, clock, log }: ThrottlingPorts) {
  const timers = new Map<number, NodeJS.Timeout>()

  function watch(registered: Registered): void {
    const { i, subscription, lastMatchAt } = registered
    if (timers.has(i)) return
    const ms = lastMatchAt + (subscription.throttling ?? 0) * 1000 - clock.monotonic()
    timers.set(
      i,
      setTimeout(() => void end(i), Math.min(Math.max(ms, 1), timerMsMax)),
    )
  }

  async function end(i: number): Promise<void> {
    timers.delete(i)
    const registered = matcher.get(i)
    if (registered === undefined || registered.throttled.size === 0) return
    const { throttling = 0 } = registered.subscription
    if (clock.monotonic() < registered.lastMatchAt + throttling * 1000) {
      watch(registered)
      return
    }
    try {
      await door.commit((stage) => {
        const current = matcher.get(i)
        if (current !== undefined) matcher.release(stage, current)
      })
    } catch (error) {
      const { code } = toGatewayError(error)
      log.warn('delivery.period-failed', { subscription: registered.subscription.id, code })
      if (code !== 'store.closed')
        timers.set(
          i,
          setTimeout(() => void end(i), limits.throttledRetryMs.value),
        )
    }
  }

  return Object.freeze({
    watch,
    stop(): void {
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  })
}

/** The longest delay of a Node timer, ms. */
const timerMsMax = 2 ** 31 - 1
