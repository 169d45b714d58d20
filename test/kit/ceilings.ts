/**
 * Ceilings of the limits table, lowered for a test, so that what happens at them happens soon. They hold in this
 * thread only: the writer thread has a table of its own.
 */
import { limits } from '#base/limits/limits.ts'

type Name = keyof typeof limits
const originals = { ...limits }
/** How often a gateway looks whether something changed that decides no outcome: no test shall wait for it. */
const looksMs = { uplinksCheckMs: 50, uplinkPauseCheckMs: 50, orchestratorSaveMs: 50 } satisfies Partial<
  Record<Name, number>
>

export function setLimit(name: Name, value: number): void {
  Object.assign(limits, { [name]: { ...originals[name], value } })
}

/** Has gateways that begin in this process look often, except at what the test set itself. */
export function lookOften(): void {
  for (const [name, value] of Object.entries(looksMs) as [Name, number][])
    if (limits[name] === originals[name]) setLimit(name, value)
}

export function restoreLimits(): void {
  Object.assign(limits, originals)
}
