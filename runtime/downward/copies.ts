/**
 * Keeps here what a centre has of some entities: loaded whole at first and again from time to time, and in between told by the
 * centre where that is another Selvedge. While the centre is away the last good copies stay. What is gone there goes
 * here; what was here by itself is left alone.
 */

import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import type { Json } from '#contract'
import { shownUri } from '#delivery/probe.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { parseNotifiedEntity } from '#ngsi-ld/federation/forwarded-subscription.ts'
import type { EntityReport } from '#ngsi-ld/subscription/notification-data.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'
import { type Centre, type CentreSettings, complaintOf } from './centre.ts'
import type { Shelf, Taken } from './copy-shelf.ts'
import { type CopyStream, listen, type StreamSettings } from './copy-stream.ts'
import { type CopySettings, pageOf, subscriptionFor } from './copy-wish.ts'
import { keyOf, type Note, type Notes, printOf } from './notes.ts'
import { createPauses } from './pause.ts'
import { createTrying, done, setback, type Tried } from './trying.ts'

export interface CopiesPorts {
  readonly centre: Centre
  readonly shelf: Shelf
  readonly notes: Notes
  readonly contexts: Pick<Contexts, 'resolve' | 'core'>
  readonly clock: Clock
  readonly dice: () => number
  readonly log: Log
}

export interface CopiesSettings {
  readonly wish: CopySettings
  readonly centre: CentreSettings
  /** Of the subscription over there. */
  readonly id: string
  readonly connection: Pick<StreamSettings, 'allowsLoopback' | 'ca'>
}

export interface CopiesStatus {
  readonly name: string
  readonly centre: string
  /** told: the centre tells at once; asked: it is asked now and then; waiting, refused: last good copies. */
  readonly state: 'told' | 'asked' | 'waiting' | 'refused'
  readonly reason?: string | undefined
  readonly copies: number
  /** Entities that are here by themselves and were left alone, at the last load. */
  readonly ours: number
  /** DateTime */
  readonly loadedAt?: string | undefined
}

export interface Copies {
  status(): CopiesStatus
  close(): Promise<void>
}

/** Renewed with each load; a gateway that is gone leaves no subscription behind for longer. */
const subscriptionLifeMs = 7 * 86_400_000
const subscriptions = '/subscriptions'

export function createCopies(ports: CopiesPorts, settings: CopiesSettings): Copies {
  const { centre, shelf, notes, clock, dice, log } = ports
  const { wish, id, connection } = settings
  const { name } = wish
  const facts = { copies: name, centre: shownUri(settings.centre.url) }
  const pauses = createPauses()
  const trying = createTrying(settings.centre.url, {
    clock,
    pauses,
    dice,
    onChange: (reason) => {
      if (reason !== undefined) log.warn('copies.failed', { ...facts, reason })
    },
  })
  /** What the centre calls itself; undefined until it was asked. */
  let pseudonym: string | undefined
  let tells = false
  let state: CopiesStatus['state'] = 'waiting'
  let stream: CopyStream | undefined
  let loadedAt: number | undefined
  let ours = 0

  /** Who the centre is, and whether it tells by streams. */
  async function meet(): Promise<Tried> {
    const identity = await centre.ask('GET', '/info/sourceIdentity')
    if ('failure' in identity || identity.status >= 500) return setback(identity, complaintOf(identity))
    const alias = identity.status === 200 ? memberOf(identity.text, 'contextSourceAlias') : undefined
    tells = alias?.startsWith('selvedge-') ?? false
    pseudonym = alias ?? new URL(settings.centre.url).host
    return done
  }

  async function subscribe(): Promise<Tried> {
    const expiry = { expiresAt: msToDateTime(centre.now() + subscriptionLifeMs) }
    const body = subscriptionFor(id, wish)
    const note: Note = { kind: 'subscription', id, centre: settings.centre, print: printOf(body) }
    const path = `${subscriptions}/${encodeURIComponent(id)}`
    if (notes.get(keyOf(note))?.print === note.print) {
      const renewed = await centre.ask('PATCH', path, expiry)
      if ('status' in renewed && renewed.status === 204) return done
      if ('failure' in renewed || renewed.status !== 404) return setback(renewed, complaintOf(renewed))
    } else {
      const cleared = await centre.ask('DELETE', path)
      if ('failure' in cleared || (cleared.status !== 204 && cleared.status !== 404))
        return setback(cleared, complaintOf(cleared))
    }
    await notes.put(note)
    const made = await centre.ask('POST', subscriptions, { ...body, ...expiry }, wish.context)
    return 'status' in made && made.status === 201 ? done : setback(made, complaintOf(made))
  }

  const context = async (): Promise<Context> =>
    wish.context === undefined ? ports.contexts.core : ports.contexts.resolve(wish.context)

  const read = (items: readonly Json[], of: Context): EntityReport[] =>
    items.filter(isObject).map((item) => parseNotifiedEntity(item, of, clock.now()))

  function told(taken: Taken): void {
    if (taken.refused > 0)
      log.warn('copies.refused', { ...facts, count: taken.refused, reason: taken.reason })
  }

  /** All pages, or why not. A list that changed between two pages is not whole. */
  async function pages(of: Context): Promise<{ readonly all: readonly EntityReport[] } | Tried> {
    const found = new Map<string, EntityReport>()
    const limit = limits.copyPage.value
    for (let offset = 0; ; ) {
      const answer = await centre.ask('GET', pageOf(wish, { limit, offset }), undefined, wish.context)
      if ('failure' in answer || answer.status !== 200) return setback(answer, complaintOf(answer))
      const items = listIn(answer.text)
      if (items === undefined) return { kind: 'refused', reason: 'its answer is no list of entities' }
      for (const one of read(items, of)) found.set(one.entity.id, one)
      if (found.size > limits.copiesMax.value)
        return { kind: 'refused', reason: `it has more than ${limits.copiesMax.value} of these` }
      offset += items.length
      // A page of large entities ends before its limit.
      if (items.length === limit || /\brel="?next\b/.test(String(answer.headers['link'] ?? ''))) continue
      const count = Number(answer.headers['ngsild-results-count'] ?? found.size)
      if (count === found.size) return { all: [...found.values()] }
      return { kind: 'later', reason: 'it changed while it was read', isUnreachable: false }
    }
  }

  async function load(): Promise<Tried> {
    try {
      const of = await context()
      const met = await meet()
      if (met.kind !== 'done') return met
      // First what comes is caught, then what is there is read, so that nothing falls between.
      const subscribed = tells ? await subscribe() : done
      if (subscribed.kind !== 'done') return subscribed
      const whole = await pages(of)
      if ('kind' in whole) return whole
      const { all } = whole
      const taken = await shelf.take(name, pseudonym!, all)
      await shelf.keepOnly(name, new Set(all.map(({ entity }) => entity.id)))
      told(taken)
      ours = taken.ours
      if (loadedAt === undefined) log.info('copies.loaded', { ...facts, copies: taken.taken, ours })
      loadedAt = clock.now()
      return done
    } catch (error) {
      return { kind: 'later', reason: (error as Error).message, isUnreachable: false }
    }
  }

  /** Takes what is told until the stream ends, or it is time to load again. */
  async function follow(): Promise<void> {
    const url = `${settings.centre.url}${subscriptions}/${encodeURIComponent(id)}`
    const of = await context()
    stream = listen(
      { url, headers: centre.headers(), ...connection },
      {
        opened: () => {
          state = 'told'
        },
        async take({ data }) {
          told(await shelf.take(name, pseudonym!, read(listOf<Json>(data ?? []), of)))
        },
      },
    )
    void stream.ended.then(pauses.wake)
    await pauses.rest(wish.everySeconds * 1000)
    state = 'asked'
    stream.close()
    const reason = await stream.ended
    stream = undefined
    log.debug('copies.stream-ended', { ...facts, reason })
    // Whatever ended it: a centre that closes each stream at once is not asked all the time.
    await pauses.rest(limits.copyPauseMs.value * (0.5 + dice()))
  }

  async function run(): Promise<void> {
    while (!pauses.isClosed()) {
      const tried = await trying.until(load)
      if (tried === undefined) return
      state = tried.kind === 'done' ? 'asked' : 'refused'
      if (tells && tried.kind === 'done') await follow()
      else await pauses.rest(wish.everySeconds * 1000)
    }
  }
  const running = run().catch((error: unknown) => {
    if (!pauses.isClosed()) log.error('gateway.fault', { during: 'copies', error })
  })

  return Object.freeze({
    status() {
      const reason = trying.trouble()
      const now = reason !== undefined && state !== 'refused' ? 'waiting' : state
      const loaded = loadedAt === undefined ? undefined : msToDateTime(loadedAt)
      const count = shelf.count(name)
      return { name, centre: facts.centre, state: now, reason, copies: count, ours, loadedAt: loaded }
    },
    async close() {
      stream?.close()
      await pauses.close(running)
    },
  } satisfies Copies)
}

function memberOf(text: string, member: string): string | undefined {
  try {
    const value = (JSON.parse(text) as JsonObject)[member]
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

function listIn(text: string): readonly Json[] | undefined {
  try {
    const body = JSON.parse(text) as Json
    return isList(body) ? body : undefined
  } catch {
    return undefined
  }
}
