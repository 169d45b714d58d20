/**
 * Copies of entities of a centre, as entities here with the centre as their origin. Which entities are copies stands on disk
 * before they do, so one is never taken for our own. An entity that was here by itself is left alone, and what is newer here
 * is not replaced by what was told before it.
 */
import { isGatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { ViaOrigin } from '#ngsi-ld/federation/via.ts'
import type { EntityReport } from '#ngsi-ld/subscription/notification-data.ts'
import type { EntityCopies } from '#store/tables/downward-notes.ts'

export interface ShelfPorts {
  readonly rows: EntityCopies
  readonly door: Pick<Door, 'commit'>
  readonly broker: Pick<TenantBroker, 'retrieve' | 'batchUpsert' | 'batchDelete'>
}

/** What became of what was told. */
export interface Taken {
  readonly taken: number
  /** Left alone, because they are our own. */
  readonly ours: number
  /** Refused, with why the first one was. */
  readonly refused: number
  readonly reason?: string | undefined
}

export interface Shelf {
  count(name: string): number
  /** Names of settings that brought something that is still here. */
  names(): ReadonlySet<string>
  /** Takes what was told, in its order. */
  take(name: string, from: string, told: readonly EntityReport[]): Promise<Taken>
  /** Removes what `name` brought and is not among these ids. */
  keepOnly(name: string, ids: ReadonlySet<string>): Promise<void>
}

interface Copy {
  readonly name: string
  /** What the centre calls itself. */
  readonly from: string
}

const isMissing = (error: unknown): boolean => isGatewayError(error, 'ngsi-ld.not-found')

export function createShelf({ rows, door, broker }: ShelfPorts): Shelf {
  const copies = new Map(rows.all().map(({ id, source }) => [id, copyOf(source)]))
  /** modifiedAt at the centre of what was taken, ms. */
  const modified = new Map<string, number>()

  const isOurs = (name: string, id: string): boolean => {
    const copy = copies.get(id)
    return copy === undefined ? broker.retrieve(id) !== undefined : copy.name !== name
  }

  async function note(ids: readonly string[], copy: Copy): Promise<void> {
    const fresh = ids.filter((id) => !copies.has(id))
    if (fresh.length === 0) return
    const source = `${copy.from} ${copy.name}`
    await door.commit((stage) => {
      for (const id of fresh) stage.write('entity_copy.put', id, source)
    })
    for (const id of fresh) copies.set(id, copy)
  }

  async function remove(ids: readonly string[]): Promise<void> {
    const byOrigin = Map.groupBy(ids, (id) => copies.get(id)!.from)
    for (const [from, some] of byOrigin) {
      const { errors } = await broker.batchDelete(some, originOf(from))
      const kept = new Set(errors.filter(({ error }) => !isMissing(error)).map(({ entityId }) => entityId))
      const gone = some.filter((id) => !kept.has(id))
      await door.commit((stage) => {
        for (const id of gone) stage.write('entity_copy.delete', id)
      })
      for (const id of gone) {
        copies.delete(id)
        modified.delete(id)
      }
    }
  }

  return Object.freeze({
    count: (name) => [...copies.values()].filter((copy) => copy.name === name).length,
    names: () => new Set([...copies.values()].map(({ name }) => name)),
    async take(name, from, told) {
      const mine = told.filter(({ entity }) => !isOurs(name, entity.id))
      const gone = new Set<string>()
      const current = new Map<string, EntityReport>()
      for (const one of mine) {
        const { id } = one.entity
        if (one.isDeleted !== true && one.times.modified < (modified.get(id) ?? 0)) continue
        current.delete(id)
        gone.delete(id)
        if (one.isDeleted !== true) current.set(id, one)
        else if (copies.has(id)) gone.add(id)
      }
      if (gone.size > 0) await remove([...gone])
      const ids = [...current.keys()]
      await note(ids, { name, from })
      const entities = [...current.values()].map(({ entity }) => entity)
      const { errors } = await broker.batchUpsert(entities, { update: false, by: originOf(from) })
      for (const [id, { times }] of current) modified.set(id, times.modified)
      for (const { entityId } of errors) modified.delete(entityId)
      const reason = errors[0] === undefined ? undefined : String((errors[0].error as Error).message)
      return {
        taken: ids.length - errors.length,
        ours: told.length - mine.length,
        refused: errors.length,
        reason,
      }
    },
    async keepOnly(name, ids) {
      const stale = [...copies].flatMap(([id, copy]) => (copy.name === name && !ids.has(id) ? [id] : []))
      if (stale.length > 0) await remove(stale)
    },
  } satisfies Shelf)
}

const originOf = (from: string): ViaOrigin => `via:${from}`

function copyOf(source: string): Copy {
  const cut = source.indexOf(' ')
  return { from: source.slice(0, cut), name: source.slice(cut + 1) }
}
