/**
 * Ends a page early if its entities are large: as many as its byte limit allows, and at least one. For pages
 * assembled from single entities; pages of a search are cut where their rows are read.
 */
import { limits } from '#base/limits/limits.ts'
import type { QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'

/** Reads entities by id until the page is full. Ids without an entity count as taken. */
export function pageOfIds(
  ids: readonly string[],
  read: (id: string) => EntityView | undefined,
): Pick<QueryPage, 'entities' | 'more'> & { readonly taken: number } {
  const entities: EntityView[] = []
  let bytes = 0
  for (const [taken, id] of ids.entries()) {
    const view = read(id)
    bytes += view?.text().length ?? 0
    if (bytes > limits.pageBytesMax.value && entities.length > 0) return { entities, more: true, taken }
    if (view !== undefined) entities.push(view)
  }
  return { entities, more: false, taken: ids.length }
}
