/**
 * Deletions at the centre. Other clients may have added attributes to an entity. The entity is deleted as a
 * whole only if all its attributes were sent from here; otherwise only those are deleted.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { limits } from '#base/limits/limits.ts'
import type { PeerAnswer } from '#federation/peer.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { Stated } from '#ngsi-ld/federation/uplink-statements.ts'
import { listOf, parsedJson } from '#ngsi-ld/values/json.ts'
import {
  areEntities,
  type ConfirmAbsent,
  endedEarly,
  isNoTenant,
  isTooLarge,
} from '#uplink/connection/absence.ts'
import { dropOf, keyOf } from '#uplink/steps/deletion-steps.ts'
import { idQuery } from '#uplink/steps/id-parts.ts'
import type { Provenance, Step } from '#uplink/steps/step-plan.ts'
import type { ForeignAttributes } from './foreign-attributes.ts'
import { done, halvesOf, inOrder, later, type SendOutcome, type Settle } from './outcome.ts'
import { remoteKeys } from './response-shapes.ts'

export interface SendOptions extends Provenance {
  readonly body?: unknown
  /** How long (ms) it may wait for the rate limit. */
  readonly heldMs?: number | undefined
  readonly states?: readonly Stated[] | undefined
}

export type SendRequest = (method: string, path: string, options?: SendOptions) => Promise<PeerAnswer>

export interface Removal {
  remove(steps: readonly Step[]): Promise<SendOutcome>
  drop(step: Step): Promise<SendOutcome>
}

/** Finds attributes that other clients wrote since their deletion here, given the centre's entities. */
export type ForeignOf = (
  there: ReadonlyMap<string, Entity>,
  steps: readonly Deletion[],
  headers: IncomingHttpHeaders,
) => Promise<ForeignAttributes | (SendOutcome & { kind: 'later' })>

/** A step that deletes something. */
type Deletion = Step & { readonly kind: 'drop' | 'remove' }

export interface RemovalPorts {
  readonly request: SendRequest
  readonly settle: Settle
  readonly confirmAbsent: ConfirmAbsent
  readonly foreignOf: ForeignOf
  /** Whether the centre is a Selvedge: its entities may have other types than here. */
  readonly isSelvedge: () => Promise<boolean | undefined>
  readonly now: () => number
}

export function createRemoval({
  request,
  settle,
  confirmAbsent,
  foreignOf,
  isSelvedge,
  now,
}: RemovalPorts): Removal {
  /** Whether queries use `local=true`, which some brokers do not know. */
  let sendsLocal = true

  async function fetchRemote(steps: readonly Step[]): Promise<PeerAnswer> {
    const ids = idQuery(steps.map(({ entity }) => entity.id))
    const isOurs = (await isSelvedge()) === true
    const all = new Set(isOurs ? ['*'] : steps.flatMap(({ entity }) => listOf(entity.type)))
    const types = [...all].map(encodeURIComponent)
    const [one] = steps
    const part = one?.kind === 'drop' ? `&attrs=${encodeURIComponent(one.name)}` : ''
    const path = `/entities?${ids}&type=${types.join(',')}${part}&limit=${steps.length}&options=sysAttrs`
    const answer = await request('GET', sendsLocal ? `${path}&local=true` : path, { via: steps[0]?.via })
    if (!sendsLocal || !('status' in answer) || answer.status !== 400) return answer
    sendsLocal = false
    return fetchRemote(steps)
  }

  /** Fetches entities and their foreign attributes; or an outcome if that is impossible now. */
  async function lookUp(
    steps: readonly Deletion[],
    again: (steps: readonly Deletion[]) => Promise<SendOutcome>,
  ): Promise<
    | { readonly there: ReadonlyMap<string, Entity>; readonly foreign: ForeignAttributes['keysById'] }
    | SendOutcome
  > {
    const answer = await fetchRemote(steps)
    if (isNoTenant(answer)) return done()
    if ((isTooLarge(answer) || endedEarly(answer)) && steps.length > 1) return inOrder(halvesOf(steps), again)
    if (isTooLarge(answer)) return done([{ step: steps[0]!, reason: answer.reason }])
    if (!('status' in answer) || answer.status >= 300)
      return settle(steps, answer, (some) => again(some as readonly Deletion[]))
    const entities = parsedJson(answer.text)
    if (!areEntities(entities)) return later(`answered ${answer.status} without a list of entities`)
    const there = new Map(entities.map((one) => [one.id, one]))
    const others = there.size === 0 ? { keysById: new Map() } : await foreignOf(there, steps, answer.headers)
    return 'kind' in others ? others : { there, foreign: others.keysById }
  }

  async function remove(steps: readonly Step[]): Promise<SendOutcome> {
    const found = await lookUp(steps.filter(isDeletion), remove)
    if ('kind' in found) return found
    const whole: Step[] = []
    const parts: Step[] = []
    for (const step of steps) {
      const there = found.there.get(step.entity.id)
      if (there === undefined || step.kind !== 'remove') continue
      const keys = remoteKeys(there)
      const theirs = found.foreign.get(step.entity.id) ?? []
      // An entity without attributes is named by an empty key.
      if (keys.length === 0 && theirs.includes('')) continue
      const ours = keys.filter((key) => step.had.has(key) && !theirs.includes(key))
      if (ours.length === keys.length) whole.push(step)
      else parts.push(...ours.map((key) => dropOf(step.entity, key, deletionTimesOf(step))))
    }
    const outcome = whole.length === 0 ? done() : await removeWhole(whole)
    if (outcome.kind === 'later') return outcome
    const rest = await inOrder(parts, dropNow)
    return rest.kind === 'later' ? rest : { ...rest, refused: [...outcome.refused, ...rest.refused] }
  }

  async function removeWhole(steps: readonly Step[]): Promise<SendOutcome> {
    const ids = steps.map(({ entity }) => entity.id)
    const answer = await request('POST', '/entityOperations/delete', { body: ids, via: steps[0]?.via })
    const outcome = await settle(steps, answer, removeWhole)
    if (outcome.kind === 'later') return outcome
    return { ...outcome, refused: outcome.refused.filter(({ isAbsent }) => isAbsent !== true) }
  }

  async function drop(step: Step): Promise<SendOutcome> {
    const isRecent =
      step.kind !== 'drop' || step.at === undefined || now() - step.at <= limits.uplinkBehindMs.value
    if (isRecent) return dropNow(step)
    const found = await lookUp([step], () => drop(step))
    if ('kind' in found) return found
    const { id } = step.entity
    const isForeign = found.foreign.get(id)?.includes(keyOf(step.name, step.dataset)) === true
    // An entity with another type, or without this attribute, is not affected.
    return isForeign || !found.there.has(id) ? done() : dropNow(step)
  }

  async function dropNow(step: Step): Promise<SendOutcome> {
    if (step.kind !== 'drop') return done()
    const { entity, name, dataset } = step
    const query = dataset === '' ? '' : `?datasetId=${encodeURIComponent(dataset)}`
    const path = `/entities/${encodeURIComponent(entity.id)}/attrs/${encodeURIComponent(name)}${query}`
    const { answer, isConfirmed } = await confirmAbsent(
      () => request('DELETE', path, { via: step.via }),
      ({ status }) => status === 404,
    )
    return isConfirmed || isNoTenant(answer) ? done() : settle([step], answer, () => dropNow(step))
  }

  return Object.freeze({ remove, drop })
}

/** Times of a deletion, copied to the steps for its parts. */
const deletionTimesOf = ({ via, at, seen }: Deletion) => ({ via, at, seen })

const isDeletion = (step: Step): step is Deletion => step.kind === 'drop' || step.kind === 'remove'
