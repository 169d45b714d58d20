/**
 * Keeps local copies of a centre's entities. They are loaded at start and again at intervals; in between, a
 * centre that is a Selvedge streams changes. While the centre is away, the last good copies stay. Entities
 * deleted there are deleted here; local entities are never touched.
 */

import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import type { Json } from '#contract'
import { shownUri } from '#delivery/probe.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { parseNotifiedEntity } from '#ngsi-ld/federation/forwarded-subscription.ts'
import type { EntityReport } from '#ngsi-ld/subscription/notification-data.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, listOf, parsedJson } from '#ngsi-ld/values/json.ts'
import { type Centre, type CentreSettings, failureReason } from './centre.ts'
import { type CopySettings, pageOf, subscriptionFor } from './copy-query.ts'
import type { CopyStore, StoreResult } from './copy-store.ts'
import { type CopyStream, listen, type StreamSettings } from './copy-stream.ts'
import { hashOf, keyOf, type Note, type Notes } from './notes.ts'
import { createPauses } from './pause.ts'
import { type Attempt, createRetrying, done, failedAttempt } from './retrying.ts'

export interface CopiesPorts extends ClockAndLog {
  readonly centre: Centre
  readonly store: CopyStore
  readonly notes: Notes
  readonly contexts: Pick<Contexts, 'resolve' | 'core'>
  readonly random: () => number
}

export interface CopiesSettings {
  readonly options: CopySettings
  readonly centre: CentreSettings
  /** The id of the subscription at the centre. */
  readonly id: string
  readonly connection: Pick<StreamSettings, 'allowsLoopback' | 'ca'>
}

export interface CopiesStatus {
  readonly name: string
  readonly centre: string
  /**
   * `notified`: the centre sends changes at once. `polled`: the gateway requests them periodically. With
   * `waiting` and `refused` the last good copies stay.
   */
  readonly state: 'notified' | 'polled' | 'waiting' | 'refused'
  readonly reason?: string | undefined
  readonly copies: number
  /** Local entities that were left alone at the last load. */
  readonly ours: number
  /** DateTime */
  readonly loadedAt?: string | undefined
}

/**
 * Lifetime of the subscription, renewed by each load; it bounds how long a removed gateway leaves one behind.
 */
const subscriptionLifeMs = 7 * 86_400_000
const subscriptions = '/subscriptions'

export type Copies = ReturnType<typeof createCopies>

export function createCopies(ports: CopiesPorts, settings: CopiesSettings) {
  const { centre, store, notes, clock, random, log } = ports
  const { options, id, connection } = settings
  const { name } = options
  const facts = { copies: name, centre: shownUri(settings.centre.url) }
  const pauses = createPauses()
  const retrying = createRetrying(settings.centre.url, {
    clock,
    pauses,
    random,
    onChange: (reason) => {
      if (reason !== undefined) log.warn('copies.failed', { ...facts, reason })
    },
  })
  /** The centre's name; undefined until requested. */
  let pseudonym: string | undefined
  let hasStreams = false
  let state: CopiesStatus['state'] = 'waiting'
  let stream: CopyStream | undefined
  let loadedAt: number | undefined
  let ours = 0

  /** Requests the centre's name, and determines whether it streams changes. */
  async function identify(): Promise<Attempt> {
    const identity = await centre.request('GET', '/info/sourceIdentity')
    if ('failure' in identity || identity.status >= 500)
      return failedAttempt(identity, failureReason(identity))
    const alias = identity.status === 200 ? memberOf(identity.text, 'contextSourceAlias') : undefined
    hasStreams = alias?.startsWith('selvedge-') ?? false
    pseudonym = alias ?? new URL(settings.centre.url).host
    return done
  }

  async function subscribe(): Promise<Attempt> {
    const expiry = { expiresAt: msToDateTime(centre.now() + subscriptionLifeMs) }
    const body = subscriptionFor(id, options)
    const note: Note = { kind: 'subscription', id, centre: settings.centre, print: hashOf(body) }
    const path = `${subscriptions}/${encodeURIComponent(id)}`
    if (notes.get(keyOf(note))?.print === note.print) {
      const renewed = await centre.request('PATCH', path, expiry)
      if ('status' in renewed && renewed.status === 204) return done
      if ('failure' in renewed || renewed.status !== 404)
        return failedAttempt(renewed, failureReason(renewed))
    } else {
      const cleared = await centre.request('DELETE', path)
      if ('failure' in cleared || (cleared.status !== 204 && cleared.status !== 404))
        return failedAttempt(cleared, failureReason(cleared))
    }
    await notes.put(note)
    const made = await centre.request('POST', subscriptions, { ...body, ...expiry }, options.context)
    return 'status' in made && made.status === 201 ? done : failedAttempt(made, failureReason(made))
  }

  const context = async (): Promise<Context> =>
    options.context === undefined ? ports.contexts.core : ports.contexts.resolve(options.context)

  const read = (items: readonly Json[], of: Context): EntityReport[] =>
    items.filter(isObject).map((item) => parseNotifiedEntity(item, of, clock.now()))

  function reportRefused(taken: StoreResult): void {
    if (taken.refused > 0)
      log.warn('copies.refused', { ...facts, count: taken.refused, reason: taken.reason })
  }

  /** Loads all pages, or fails with the reason. A list that changed between two pages is incomplete. */
  async function pages(of: Context): Promise<{ readonly all: readonly EntityReport[] } | Attempt> {
    const found = new Map<string, EntityReport>()
    const limit = limits.copyPage.value
    for (let offset = 0; ; ) {
      const answer = await centre.request(
        'GET',
        pageOf(options, { limit, offset }),
        undefined,
        options.context,
      )
      if ('failure' in answer || answer.status !== 200) return failedAttempt(answer, failureReason(answer))
      const items = listIn(answer.text)
      if (items === undefined) return { kind: 'refused', reason: 'the response is not a list of entities' }
      for (const one of read(items, of)) found.set(one.entity.id, one)
      if (found.size > limits.copiesMax.value)
        return {
          kind: 'refused',
          reason: `the centre has more than ${limits.copiesMax.value} matching entities`,
        }
      offset += items.length
      // A page of large entities may be shorter than its limit.
      if (items.length === limit || /\brel="?next\b/.test(String(answer.headers['link'] ?? ''))) continue
      const count = Number(answer.headers['ngsild-results-count'] ?? found.size)
      if (count === found.size) return { all: [...found.values()] }
      return { kind: 'later', reason: 'the list changed while it was read', isUnreachable: false }
    }
  }

  async function load(): Promise<Attempt> {
    try {
      const of = await context()
      const identified = await identify()
      if (identified.kind !== 'done') return identified
      // Subscribes before reading, so that no change is missed in between.
      const subscribed = hasStreams ? await subscribe() : done
      if (subscribed.kind !== 'done') return subscribed
      const whole = await pages(of)
      if ('kind' in whole) return whole
      const { all } = whole
      const taken = await store.put(name, pseudonym!, all)
      await store.retainOnly(name, new Set(all.map(({ entity }) => entity.id)))
      reportRefused(taken)
      ours = taken.ours
      if (loadedAt === undefined) log.info('copies.loaded', { ...facts, copies: taken.stored, ours })
      loadedAt = clock.now()
      return done
    } catch (error) {
      return { kind: 'later', reason: (error as Error).message, isUnreachable: false }
    }
  }

  /** Stores streamed changes until the stream ends or the next load is due. */
  async function follow(): Promise<void> {
    const url = `${settings.centre.url}${subscriptions}/${encodeURIComponent(id)}`
    const of = await context()
    stream = listen(
      { url, headers: centre.headers(), ...connection },
      {
        onOpen: () => {
          state = 'notified'
        },
        async onNotification({ data }) {
          reportRefused(await store.put(name, pseudonym!, read(listOf<Json>(data ?? []), of)))
        },
      },
    )
    void stream.ended.then(pauses.wake)
    await pauses.sleep(options.everySeconds * 1000)
    state = 'polled'
    stream.close()
    const reason = await stream.ended
    stream = undefined
    log.debug('copies.stream-ended', { ...facts, reason })
    // Pauses in any case, so that a centre that closes each stream at once is not flooded.
    await pauses.sleep(limits.copyPauseMs.value * (0.5 + random()))
  }

  async function run(): Promise<void> {
    while (!pauses.isClosed()) {
      const outcome = await retrying.until(load)
      if (outcome === undefined) return
      state = outcome.kind === 'done' ? 'polled' : 'refused'
      if (hasStreams && outcome.kind === 'done') await follow()
      else await pauses.sleep(options.everySeconds * 1000)
    }
  }
  const running = run().catch((error: unknown) => {
    if (!pauses.isClosed()) log.error('gateway.fault', { during: 'copies', error })
  })

  return Object.freeze({
    status(): CopiesStatus {
      const reason = retrying.trouble()
      const now = reason !== undefined && state !== 'refused' ? 'waiting' : state
      const loaded = loadedAt === undefined ? undefined : msToDateTime(loadedAt)
      const count = store.count(name)
      return { name, centre: facts.centre, state: now, reason, copies: count, ours, loadedAt: loaded }
    },
    async close(): Promise<void> {
      stream?.close()
      await pauses.close(running)
    },
  })
}

function memberOf(text: string, member: string): string | undefined {
  const body = parsedJson(text)
  const value = isObject(body) ? body[member] : undefined
  return typeof value === 'string' ? value : undefined
}

function listIn(text: string): readonly Json[] | undefined {
  const body = parsedJson(text)
  return isList(body) ? body : undefined
}
