/**
 * Losses of a history are reported once, also across restarts, and only changed ones are written.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { createLosses, type LossesPorts } from './losses.ts'
import type { Loss } from './thinning.ts'
import { newState } from './uplink-state.ts'

afterEach(restoreLimits)

const values = {
  valueAt: (i: number): number => i,
  timeAt: (i: number): number => 1_767_225_600_000 + i * 1000,
}
const places = Array.from({ length: 100 }, (_, i) => i)

describe('losses that are not reported yet', () => {
  const open = (before: ReadonlyMap<string, Loss> = new Map(), isNew = false) => {
    const ports = {
      state: newState({ n: 0, at: 0 }, undefined),
      before,
      isNew,
      following: { streamOf: (s: number) => (s === 0 ? undefined : { id: `urn:T:${s}`, name: 'level' }) },
      backlog: { follow: () => () => undefined, gapsSince: () => [], gapSums: () => [], firstGap: () => 0 },
    } as unknown as LossesPorts
    const scopePrefix = createScopePrefix(undefined)
    return createLosses(ports, { uplink: 'up', alias: 'site', thinMs: 10_000, scopePrefix })
  }
  const lose = (losses: ReturnType<typeof open>, streams: readonly number[]): void => {
    losses.begin(0)
    for (const s of streams) losses.keep({ ...values, s }, places, 'bare')
    losses.end(1)
  }
  /** The reported numbers by entity. */
  const toldBy = (losses: ReturnType<typeof open>): Readonly<Record<string, unknown>> => {
    const sent: Record<string, unknown> = {}
    for (const page of losses.gaps({ began: 0, to: 1, unnamed: {} })) {
      for (const step of page.steps as readonly (Step & { kind: 'put' })[]) {
        const of = step.attributes.get('gapOf')?.[0]?.['object'] as string | undefined
        sent[of ?? 'undefined'] = step.attributes.get('lost')?.[0]?.value
      }
      page.onAccepted()
    }
    return sent
  }

  it('are written only if they changed', () => {
    const losses = open()
    lose(losses, [1, 2, 3])
    const { rows, onSaved } = losses.changes()
    expect(rows.map(([of]) => of)).toEqual(['1 budget', '2 budget', '3 budget'])
    lose(losses, [2])
    onSaved()
    expect(losses.changes().rows).toMatchObject([['2 budget', { count: 200 }]])
    losses.changes().onSaved()
    expect(losses.changes().rows).toEqual([])
    toldBy(losses)
    expect(losses.changes().rows).toEqual(['1', '2', '3'].map((s) => [`${s} budget`, undefined]))
  })

  it('beyond the limit are one sum, and none is lost', () => {
    setLimit('uplinkLossesMax', 2)
    const losses = open()
    lose(losses, [1, 2, 3, 4])
    lose(losses, [2, 4])
    expect(toldBy(losses)).toEqual({ 'urn:T:1': 100, 'urn:T:2': 200, undefined: 300 })
  })

  it('are discarded with the data sent beside them, including the slice being sent', () => {
    const losses = open()
    lose(losses, [1])
    losses.changes().onSaved()
    losses.begin(0)
    losses.keep({ ...values, s: 2 }, places, 'bare')
    losses.forget()
    losses.keep({ ...values, s: 3 }, places, 'bare')
    losses.end(1)
    expect(losses.changes().rows).toEqual([['1 budget', undefined]])
    lose(losses, [4])
    expect(toldBy(losses)).toEqual({ 'urn:T:4': 100 })
  })

  it('stay valid until they are discarded', () => {
    const losses = open()
    lose(losses, [1])
    const [page] = losses.gaps({ began: 0, to: 1, unnamed: {} })
    expect(page?.isValid?.()).toBe(true)
    losses.forget()
    expect(page?.isValid?.()).toBe(false)
    lose(losses, [2])
    const [next] = losses.gaps({ began: 0, to: 1, unnamed: {} })
    expect([page?.isValid?.(), next?.isValid?.()]).toEqual([false, true])
  })

  it('continue from disk, but not for another centre', () => {
    const first = open()
    lose(first, [1, 2])
    const onDisk = new Map(first.changes().rows as readonly [string, Loss][])
    expect(toldBy(open(onDisk))).toEqual({ 'urn:T:1': 100, 'urn:T:2': 100 })
    expect(toldBy(open(onDisk, true))).toEqual({})
    expect(open(onDisk, true).changes().rows).toEqual(['1', '2'].map((s) => [`${s} budget`, undefined]))
  })
})
