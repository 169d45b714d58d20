/**
 * Things in parts whose ids fit into the address of one request. Pure.
 */
import { limits } from '#base/limits.ts'

export function idParts<T>(all: readonly T[], idOf: (one: T) => string): readonly (readonly T[])[] {
  const parts: T[][] = []
  let room = 0
  for (const one of all) {
    const size = encodeURIComponent(idOf(one)).length + 3
    if (room < size || parts.at(-1)!.length >= limits.digestIdsMax.value) {
      parts.push([])
      room = Math.max(size, limits.uplinkAddressBytes.value)
    }
    room -= size
    parts.at(-1)!.push(one)
  }
  return parts
}
