/**
 * Splits items into parts whose ids fit into the URL of one request, and builds the query for a part. Because
 * commas separate ids, an id that contains one is queried alone, by a pattern. Pure.
 */
import { limits } from '#base/limits/limits.ts'

const hasComma = (id: string): boolean => id.includes(',')

export function idParts<T>(all: readonly T[], idOf: (one: T) => string): readonly (readonly T[])[] {
  const parts: T[][] = []
  let room = 0
  for (const one of all) {
    const id = idOf(one)
    const size = encodeURIComponent(id).length + 3
    const isAlone = hasComma(id)
    if (isAlone || room < size || parts.at(-1)!.length >= limits.digestIdsMax.value) {
      parts.push([])
      room = isAlone ? 0 : Math.max(size, limits.uplinkAddressBytes.value)
    }
    room -= size
    parts.at(-1)!.push(one)
  }
  return parts
}

/** The query parameter for the entities of such a part (GS CIM 009, 5.7.2). */
export function idQuery(ids: readonly string[]): string {
  const [id = ''] = ids
  if (ids.length === 1 && hasComma(id)) {
    const pattern = id.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
    return `idPattern=${encodeURIComponent(`^${pattern}$`)}`
  }
  return `id=${ids.map(encodeURIComponent).join(',')}`
}
