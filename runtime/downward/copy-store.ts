/**
 * Stores copies of a centre's entities, with the centre as their origin. The list of copies is on disk before
 * the copies are, so a copy is never mistaken for a local entity. Local entities are left alone, and newer
 * copies are not replaced by older data.
 */
import { isGatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { ViaOrigin } from '#ngsi-ld/federation/via.ts'
import type { EntityReport } from '#ngsi-ld/subscription/notification-data.ts'
import type { EntityCopies } from '#store/tables/downward-notes.ts'

export interface CopyStorePorts {
  readonly rows: EntityCopies
  readonly door: Pick<Door, 'commit'>
  readonly broker: Pick<TenantBroker, 'retrieve' | 'batchUpsert' | 'batchDelete'>
}

/** The result of storing received entities. */
export interface StoreResult {
  readonly stored: number
  /** Left alone, because they are local entities. */
  readonly ours: number
  /** Refused, with the reason of the first refusal. */
  readonly refused: number
  readonly reason?: string | undefined
}

interface Copy {
  readonly name: string
  /** The centre's name. */
  readonly from: string
}

const isMissing = (error: unknown): boolean => isGatewayError(error, 'ngsi-ld.not-found')

export type CopyStore = ReturnType<typeof createCopyStore>

export function createCopyStore({ rows, door, broker }: CopyStorePorts) {
  const copies = new Map(rows.all().map(({ id, source }) => [id, copyOf(source)]))
  /** modifiedAt (ms) at the centre of stored copies. */
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
    count: (name: string) => [...copies.values()].filter((copy) => copy.name === name).length,
    /** Names of the settings with copies stored here. */
    names: (): ReadonlySet<string> => new Set([...copies.values()].map(({ name }) => name)),
    /** Stores or deletes received entities in order. */
    async put(name: string, from: string, received: readonly EntityReport[]): Promise<StoreResult> {
      const mine = received.filter(({ entity }) => !isOurs(name, entity.id))
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
        stored: ids.length - errors.length,
        ours: received.length - mine.length,
        refused: errors.length,
        reason,
      }
    },
    /** Deletes the copies of `name` that are not among these ids. */
    async retainOnly(name: string, ids: ReadonlySet<string>): Promise<void> {
      const stale = [...copies].flatMap(([id, copy]) => (copy.name === name && !ids.has(id) ? [id] : []))
      if (stale.length > 0) await remove(stale)
    },
  })
}

const originOf = (from: string): ViaOrigin => `via:${from}`

function copyOf(source: string): Copy {
  const cut = source.indexOf(' ')
  return { from: source.slice(0, cut), name: source.slice(cut + 1) }
}
