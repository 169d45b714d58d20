/**
 * Subscriptions with timeInterval (GS CIM 009, 5.8.6): each period sends all entities that match then, and
 * nothing if none matches. Periods are counted on the monotonic clock; the last one is stored with the
 * subscription, so that a restart neither repeats nor skips one. A delivery contains entity ids, and the
 * entities are read when it is sent. A period still pending when the next one begins is dropped, since both
 * would send the same.
 */

import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { toGatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import { isActive } from '#ngsi-ld/subscription/subscription.ts'
import type { Matcher, Registered } from './matcher.ts'

export interface PeriodicPorts extends ClockAndLog {
  readonly door: Door
  readonly matcher: Matcher
  readonly find: (query: EntityQuery) => QueryPage | Promise<QueryPage>
}

interface Schedule {
  registered: Registered
  /** Monotonic ms of the next period. */
  dueAt: number
  timer: NodeJS.Timeout | undefined
}

/** Maximum delay of Node's timers. */
const timerMsMax = 2 ** 31 - 1

export function createPeriodic(ports: PeriodicPorts) {
  const { clock, matcher } = ports
  const schedules = new Map<number, Schedule>()

  function startTimer(schedule: Schedule): void {
    const ms = Math.max(0, schedule.dueAt - clock.monotonic())
    schedule.timer = setTimeout(() => void runPeriod(schedule), Math.min(ms, timerMsMax))
  }

  async function runPeriod(schedule: Schedule): Promise<void> {
    const { registered } = schedule
    if (clock.monotonic() >= schedule.dueAt) {
      await notify(registered).catch((error: unknown) => {
        const { code } = toGatewayError(error)
        // Closing, or a full disk: important errors are reported elsewhere, and the next period follows.
        ports.log.warn('delivery.period-failed', { subscription: registered.subscription.id, code })
      })
      schedule.dueAt = nextAfter(schedule.dueAt, intervalOf(registered), clock.monotonic())
    }
    if (schedules.get(registered.i) === schedule) startTimer(schedule)
  }

  async function notify(registered: Registered): Promise<void> {
    const { subscription } = registered
    if (!isActive(subscription, clock.now())) return
    const pages = pagesOf(await matching(ports, registered))
    if (pages.length === 0) return
    await ports.door.commit((stage) => {
      if (matcher.get(registered.i) === registered) matcher.period(stage, registered, pages)
    })
  }

  return Object.freeze({
    /** Schedules a new or changed subscription. */
    watch(registered: Registered): void {
      const before = schedules.get(registered.i)
      clearTimeout(before?.timer)
      schedules.delete(registered.i)
      if (registered.subscription.timeInterval === undefined) return
      const isSame = before !== undefined && intervalOf(before.registered) === intervalOf(registered)
      const dueAt = isSame ? before.dueAt : clock.monotonic() + remaining(registered, clock.now())
      const schedule: Schedule = { registered, dueAt, timer: undefined }
      schedules.set(registered.i, schedule)
      startTimer(schedule)
    },
    forget(i: number): void {
      clearTimeout(schedules.get(i)?.timer)
      schedules.delete(i)
    },
    stop(): void {
      for (const { timer } of schedules.values()) clearTimeout(timer)
      schedules.clear()
    },
  })
}

export type Periodic = ReturnType<typeof createPeriodic>

const intervalOf = ({ subscription }: Registered): number => subscription.timeInterval! * 1000

/**
 * Time until the next period, by wall-clock time of the last one; setting the clock never makes it longer.
 */
function remaining(registered: Registered, now: number): number {
  const interval = intervalOf(registered)
  const last = registered.statistics.lastPeriodAt
  return last === undefined ? interval : Math.min(interval, Math.max(0, last + interval - now))
}

/** Missed periods are skipped. */
function nextAfter(dueAt: number, interval: number, now: number): number {
  return dueAt + interval * Math.max(1, Math.ceil((now - dueAt) / interval))
}

/** Every entity that matches now. */
async function matching({ find }: PeriodicPorts, { subscription }: Registered): Promise<EntityView[]> {
  const { entities, q, geoQ, scopeQ } = subscription
  const found: EntityView[] = []
  let page: QueryPage | undefined
  do {
    page = await find({
      selectors: entities,
      q,
      geo: geoQ,
      scope: scopeQ,
      limit: limits.pageMax.value,
      offset: 0,
      after: page?.next,
      count: false,
    })
    found.push(...page.entities)
  } while (page.more && found.length < limits.periodEntitiesMax.value)
  return found
}

/** Ids by notification, so that none exceeds the size limit. */
function pagesOf(views: readonly EntityView[]): string[][] {
  const pages: string[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const view of views) {
    const size = view.text().length
    if (bytes + size > limits.notificationBytes.value) {
      pages.push([])
      bytes = 0
    }
    bytes += size
    pages.at(-1)!.push(view.id)
  }
  return pages
}
