/**
 * Deletions at the other broker. Others may have a part in an entity: it is deleted as a whole only where it is nothing but
 * what was sent from here, else only the attribute instances that this gateway had.
 */
import type { PeerAnswer } from '#federation/peer.ts'
import { listOf, parsedJson } from '#ngsi-ld/json.ts'
import { areEntities, isTooLarge, type SeeAbsent, saysNoTenant } from './absence.ts'
import { idQuery } from './id-parts.ts'
import { done, halvesOf, inTurn, later, type Outcome, type Settle } from './outcome.ts'
import type { Came, Step } from './plan.ts'
import { dropOf } from './reading.ts'
import { keysThere } from './told.ts'

type Ask = (method: string, path: string, body?: unknown, came?: Came) => Promise<PeerAnswer>

export interface Removal {
  remove(steps: readonly Step[]): Promise<Outcome>
  drop(step: Step): Promise<Outcome>
}

/** What others wrote of entities, by id, as far as that is told. */
export type OthersOf = (
  ids: readonly string[],
) => Promise<{ readonly by: ReadonlyMap<string, readonly string[]> } | (Outcome & { kind: 'later' })>

export function createRemoval(ask: Ask, settle: Settle, seeAbsent: SeeAbsent, othersOf: OthersOf): Removal {
  /** Some do not know that only they are asked. */
  let asksLocally = true

  async function present(steps: readonly Step[]): Promise<PeerAnswer> {
    const ids = idQuery(steps.map(({ entity }) => entity.id))
    const types = [...new Set(steps.flatMap(({ entity }) => listOf(entity.type)))].map(encodeURIComponent)
    const path = `/entities?${ids}&type=${types.join(',')}&limit=${steps.length}`
    const answer = await ask('GET', asksLocally ? `${path}&local=true` : path, undefined, steps[0])
    if (!asksLocally || !('status' in answer) || answer.status !== 400) return answer
    asksLocally = false
    return present(steps)
  }

  async function remove(steps: readonly Step[]): Promise<Outcome> {
    const answer = await present(steps)
    if (saysNoTenant(answer)) return done()
    if (isTooLarge(answer) && steps.length > 1) return inTurn(halvesOf(steps), remove)
    if (isTooLarge(answer)) return done([{ step: steps[0]!, reason: answer.reason }])
    if (!('status' in answer) || answer.status >= 300) return settle(steps, answer, remove)
    const there = keysIn(answer.text)
    if (there === undefined) return later(`answered ${answer.status} without a list of entities`)
    const others =
      there.size === 0 ? { by: new Map<string, readonly string[]>() } : await othersOf([...there.keys()])
    if ('kind' in others) return others
    const whole: Step[] = []
    const parts: Step[] = []
    for (const step of steps) {
      const keys = there.get(step.entity.id)
      if (keys === undefined || step.kind !== 'remove') continue
      const theirs = others.by.get(step.entity.id) ?? []
      const ours = keys.filter((key) => step.had.has(key) && !theirs.includes(key))
      if (ours.length === keys.length) whole.push(step)
      else parts.push(...ours.map((key) => dropOf(step.entity, key, step.heard)))
    }
    const outcome = whole.length === 0 ? done() : await removeWhole(whole)
    if (outcome.kind === 'later') return outcome
    const rest = await inTurn(parts, drop)
    return rest.kind === 'later' ? rest : { ...rest, refused: [...outcome.refused, ...rest.refused] }
  }

  async function removeWhole(steps: readonly Step[]): Promise<Outcome> {
    const ids = steps.map(({ entity }) => entity.id)
    const answer = await ask('POST', '/entityOperations/delete', ids, steps[0])
    const outcome = await settle(steps, answer, removeWhole)
    if (outcome.kind === 'later') return outcome
    return { ...outcome, refused: outcome.refused.filter(({ isAbsent }) => isAbsent !== true) }
  }

  async function drop(step: Step): Promise<Outcome> {
    if (step.kind !== 'drop') return done()
    const { entity, name, dataset } = step
    const query = dataset === '' ? '' : `?datasetId=${encodeURIComponent(dataset)}`
    const path = `/entities/${encodeURIComponent(entity.id)}/attrs/${encodeURIComponent(name)}${query}`
    const { answer, isBelieved } = await seeAbsent(
      () => ask('DELETE', path, undefined, step),
      ({ status }) => status === 404,
    )
    return isBelieved || saysNoTenant(answer) ? done() : settle([step], answer, () => drop(step))
  }

  return Object.freeze({ remove, drop })
}

/** The attribute instances of the entities in an answer, by entity; undefined of an answer that is no list. */
function keysIn(text: string): ReadonlyMap<string, readonly string[]> | undefined {
  const entities = parsedJson(text)
  return areEntities(entities) ? new Map(entities.map((one) => [one.id, keysThere(one)])) : undefined
}
