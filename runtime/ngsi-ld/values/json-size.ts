/**
 * Estimates the number of characters of a value as JSON without building the text: for limits, not for
 * Content-Length.
 */
const scalarSize = 8
const memberSize = 2

export function sizeOfJson(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return scalarSize
  let size = memberSize
  if (Array.isArray(value)) for (const item of value) size += memberSize + sizeOfJson(item)
  else
    for (const [name, member] of Object.entries(value)) size += name.length + memberSize + sizeOfJson(member)
  return size
}
