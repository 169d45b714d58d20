/** A set of ids. Most sets have one id, which then needs no Set. */
export type IdSet = string | Set<string> | undefined

export function withId(ids: IdSet, id: string): IdSet {
  if (ids === undefined || ids === id) return id
  return typeof ids === 'string' ? new Set([ids, id]) : ids.add(id)
}

export function withoutId(ids: IdSet, id: string): IdSet {
  if (typeof ids === 'string') return ids === id ? undefined : ids
  ids?.delete(id)
  return ids?.size === 0 ? undefined : ids
}

export const idsIn = (ids: IdSet): Iterable<string> => (typeof ids === 'string' ? [ids] : (ids ?? []))
