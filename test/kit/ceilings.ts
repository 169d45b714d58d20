/**
 * Ceilings of the limits table, lowered for a test, so that what happens at them happens soon. They hold in this
 * thread only: the writer thread has a table of its own.
 */
import { limits } from '#base/limits.ts'

const originals = { ...limits }

export function setLimit(name: keyof typeof limits, value: number): void {
  Object.assign(limits, { [name]: { ...originals[name], value } })
}

export function restoreLimits(): void {
  Object.assign(limits, originals)
}
