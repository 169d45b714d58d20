/** Values by id. Most ids have one value, which then needs no Set. */
export interface IdIndex<T extends object> {
  add(id: string, value: T): void
  delete(id: string, value: T): void
  /** The values of an id, as they are now. */
  of(id: string): readonly T[]
}

export function createIdIndex<T extends object>(): IdIndex<T> {
  const one = new Map<string, T>()
  /** All values of ids that have several. */
  const several = new Map<string, Set<T>>()
  return Object.freeze({
    add(id, value) {
      const first = one.get(id) ?? value
      one.set(id, first)
      if (first === value) return
      const values = several.get(id) ?? new Set([first])
      several.set(id, values.add(value))
    },
    delete(id, value) {
      const values = several.get(id)
      values?.delete(value)
      if (one.get(id) === value) {
        const [next] = values ?? []
        if (next === undefined) one.delete(id)
        else one.set(id, next)
      }
      if (values !== undefined && values.size < 2) several.delete(id)
    },
    of(id) {
      const values = several.get(id)
      if (values !== undefined) return [...values]
      const value = one.get(id)
      return value === undefined ? [] : [value]
    },
  } satisfies IdIndex<T>)
}
