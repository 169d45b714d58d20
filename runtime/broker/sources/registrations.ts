/**
 * Use-cases on registrations of context sources (GS CIM 009, 5.9 and 5.10). All of them are held in memory,
 * because every distributed operation reads them. Each change is a work at the door, which in the same commit
 * notifies subscriptions to registrations. Expired registrations are ignored, and deleted by the next sweep.
 */

import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { createStaged } from '#broker/commit/staged-values.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import {
  isExpired,
  modeOf,
  type Registration,
  type RegistrationStatistics,
  type RegistrationView,
} from '#ngsi-ld/federation/registration.ts'
import { conflicts, type Discovery, discover, namesOf } from '#ngsi-ld/federation/registration-match.ts'
import { alreadyExists, conflict, notFound, tooManyResults } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'
import type { ContextSources } from '#store/tables/source-rows.ts'
import { createKeptCopies } from './kept-copies.ts'
import type { RegistrationBroker } from './source-requests.ts'

export interface RegistrationPorts extends ClockAndLog {
  readonly door: Door
  readonly rows: ContextSources
  /** Committed entities. */
  readonly query: (query: EntityQuery) => QueryPage
  /** Called while a change is decided. */
  readonly onChange: (
    stage: Stage,
    before: RegistrationView | undefined,
    after: RegistrationView | undefined,
  ) => void
}

/** Minimum interval at which counters of registrations are written, ms. */
const statisticsEveryMs = 10_000

export function createRegistrations(ports: RegistrationPorts) {
  const { door, clock } = ports
  const all = createStaged<RegistrationView>('registrations')
  for (const view of readStored(ports)) all.load(view.registration.id, view)
  const { stored } = all
  const isLive = ({ registration }: RegistrationView): boolean => !isExpired(registration, clock.now())
  const live = (): RegistrationView[] => [...stored.values()].filter(isLive)
  let statisticsAt = Number.NEGATIVE_INFINITY
  const touched = new Set<string>()
  const copies = createKeptCopies({
    ...ports,
    isAllowed: (id) => stored.get(id)?.registration.management?.cacheDuration !== undefined,
  })

  function find(stage: Stage, id: string): RegistrationView | undefined {
    const found = all.find(stage, id)
    return found !== undefined && isLive(found) ? found : undefined
  }

  function put(stage: Stage, id: string, view: RegistrationView | undefined): void {
    if (view === undefined) stage.write('csource.delete', id)
    else stage.write('csource.put', id, JSON.stringify(view.registration), JSON.stringify(view.statistics))
    all.put(stage, id, view)
  }

  /** @throws ngsi-ld.conflict */
  function refuseConflicts(stage: Stage, registration: Registration): void {
    for (const [id, other] of all.all(stage)) {
      if (id === registration.id || !isLive(other)) continue
      if (conflicts(registration, other.registration))
        throw conflict(`the registration ${id} exclusively claims the same information`)
    }
    const held = heldLocally(registration, ports.query)
    if (held !== undefined)
      throw conflict(`the registration claims information that the local entity ${held} contains`)
  }

  /** Writes the counters that changed since the last time. */
  function writeStatistics(): void {
    if (touched.size === 0) return
    statisticsAt = clock.monotonic()
    const ids = [...touched]
    touched.clear()
    door.submit({
      urgent: false,
      bytes: ids.length * 256,
      decide(stage) {
        for (const id of ids) {
          const known = stored.get(id)
          if (known !== undefined) stage.write('csource.stats', JSON.stringify(known.statistics), id)
        }
      },
      answer: () => undefined,
    })
  }

  const broker: RegistrationBroker = Object.freeze({
    create: (registration) =>
      door.commit((stage) => {
        if (find(stage, registration.id) !== undefined)
          throw alreadyExists(`the registration ${registration.id} already exists`)
        if (stored.size >= limits.registrationsMax.value)
          throw tooManyResults(`the maximum of ${stored.size} registrations is reached`)
        refuseConflicts(stage, registration)
        const at = clock.now()
        const view = {
          registration,
          statistics: { createdAt: at, modifiedAt: at, timesSent: 0, timesFailed: 0 },
        }
        put(stage, registration.id, view)
        ports.onChange(stage, undefined, view)
      }),
    get(id) {
      const found = stored.get(id)
      return found !== undefined && isLive(found) ? found : undefined
    },
    isEmpty: () => stored.size === 0,
    live,
    discover(discovery: Discovery, { limit, offset }) {
      const found = discover(discovery, live())
      return { views: found.slice(offset, offset + limit), count: found.length }
    },
    patch: (id, change) =>
      door.commit((stage) => {
        const before = find(stage, id)
        if (before === undefined) throw notFound(`the registration ${id} does not exist`)
        const registration = change(before.registration)
        if (claimsMore(before.registration, registration)) refuseConflicts(stage, registration)
        if (invalidatesCopies(before.registration, registration)) copies.forget(stage, id)
        const after = { registration, statistics: { ...before.statistics, modifiedAt: clock.now() } }
        put(stage, id, after)
        ports.onChange(stage, before, after)
      }),
    delete: (id) =>
      door.commit(
        (stage) => {
          const before = find(stage, id)
          if (before === undefined) throw notFound(`the registration ${id} does not exist`)
          put(stage, id, undefined)
          copies.forget(stage, id)
          ports.onChange(stage, before, undefined)
        },
        { isSparing: true },
      ),
    copies: copies.broker,
    outcome(id: string, isSuccess: boolean): void {
      const view = stored.get(id)
      if (view === undefined) return
      const now = clock.now()
      const { statistics } = view
      // Failed attempts count as sent.
      statistics.timesSent++
      if (isSuccess) {
        statistics.lastSuccess = now
      } else {
        statistics.timesFailed++
        statistics.lastFailure = now
      }
      touched.add(id)
    },
  } satisfies RegistrationBroker)

  return Object.freeze({
    broker,
    seenBy: (stage: Stage): RegistrationView[] => [...all.all(stage).values()].filter(isLive),
    /** Writes everything still unwritten. */
    settle(): void {
      writeStatistics()
      copies.settle()
    },
    /** Deletes expired registrations, and periodically writes counters and copies. */
    sweep(): void {
      copies.sweep()
      if (clock.monotonic() - statisticsAt >= statisticsEveryMs) writeStatistics()
      for (const [id, view] of stored) {
        if (isLive(view)) continue
        door.submit({
          urgent: false,
          bytes: 256,
          decide(stage) {
            if (all.find(stage, id) !== view) return
            put(stage, id, undefined)
            copies.forget(stage, id)
            ports.onChange(stage, view, undefined)
          },
          answer: () => undefined,
        })
      }
    },
  })
}

/** Whether copies of earlier responses become invalid. */
const invalidatesCopies = (before: Registration, after: Registration): boolean =>
  before.endpoint !== after.endpoint || after.management?.cacheDuration === undefined

/** Whether the change claims more, or in another mode. */
const claimsMore = (before: Registration, after: Registration): boolean =>
  modeOf(before) !== modeOf(after) || JSON.stringify(before.information) !== JSON.stringify(after.information)

/** A local entity that an exclusive or redirect registration would claim. */
function heldLocally(registration: Registration, query: RegistrationPorts['query']): string | undefined {
  const mode = modeOf(registration)
  if (mode !== 'exclusive' && mode !== 'redirect') return undefined
  for (const info of registration.information) {
    const names = namesOf(info)
    const attrs = names === undefined ? undefined : [...names]
    for (const { id, idPattern, types } of info.entities ?? [{ types: [] as string[] }]) {
      const parts = types.map((name) => ({ kind: 'type' as const, name }))
      const selection = parts.length > 1 ? { kind: 'or' as const, parts } : parts[0]
      const { entities } = query({
        selection,
        ids: id === undefined ? undefined : [id],
        idPattern: id === undefined && idPattern !== undefined ? compilePattern(idPattern) : undefined,
        attrs,
        limit: 1,
        offset: 0,
        count: false,
      })
      if (entities[0] !== undefined) return entities[0].id
    }
  }
  return undefined
}

function readStored({ rows, log }: RegistrationPorts): RegistrationView[] {
  return rows.registrations().flatMap(({ id, doc, stats }) => {
    try {
      return {
        registration: JSON.parse(doc) as Registration,
        statistics: JSON.parse(stats) as RegistrationStatistics,
      }
    } catch (error) {
      // An unreadable registration must not keep the gateway from starting.
      log.error('gateway.fault', { registration: id, during: 'start', error })
      return []
    }
  })
}
