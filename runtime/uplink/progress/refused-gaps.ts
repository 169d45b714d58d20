/**
 * What the other broker refused and is not kept any more: an entity of type HistoryGap tells it which attribute of which entity
 * is missing, from when to when, and how much at most. What is still to be told is part of the state, bounded; beyond, one gap
 * without an entity counts all the rest. Nothing is told of gaps that are refused themselves.
 */

import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import type { ScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { gapPrefix, gapStep, gapType } from './gap-step.ts'
import type { DroppedRefusal } from './refusals.ts'
import type { RefusedGap, UplinkState } from './uplink-state.ts'

export interface RefusedGapRule {
  readonly uplink: string
  readonly alias: string
  readonly scopePrefix: ScopePrefix
}

/** Adds what goes to what is to be told. Returns how that is taken back; what was told meanwhile stays so. */
export function addRefusedGaps(state: UplinkState, gone: readonly DroppedRefusal[]): () => void {
  const before = { ...state.forgone }
  for (const one of gone) {
    if ([one.entity.type].flat().includes(gapType)) continue
    for (const lost of gapsOf(one)) {
      const named = JSON.stringify([lost.id, lost.name, lost.dataset])
      const hasRoom =
        named in state.forgone || Object.keys(state.forgone).length < limits.uplinkRefusedGapsMax.value
      const key = hasRoom ? named : ''
      const { from, to, count, since } = lost
      const known =
        state.forgone[key] ?? (hasRoom ? { ...lost, count: 0 } : { from, to, count: 0, since: since! })
      state.forgone[key] = {
        ...known,
        ...{ from: Math.min(known.from, from), to: Math.max(known.to, to), count: known.count + count },
      }
    }
  }
  const after = { ...state.forgone }
  return () => {
    for (const [key, one] of Object.entries(after)) {
      if (state.forgone[key] !== one) continue
      if (before[key] === undefined) delete state.forgone[key]
      else state.forgone[key] = before[key]
    }
  }
}

function gapsOf({ entity: { id }, attributes, at, q }: DroppedRefusal): readonly RefusedGap[] {
  const since = `${at}-${q}`
  if (attributes === undefined) return [{ id, from: at, to: at, count: 1, since }]
  return Object.entries(attributes).flatMap(([name, instances]) =>
    instances.map(({ observedAt = '', datasetId: dataset = '' }): RefusedGap => {
      const time = dateTimeToMs(observedAt) ?? at
      return { id, name, dataset, from: time, to: time, count: 1, since }
    }),
  )
}

/** What is to be told now; `told` is to be called then. */
export function refusedGapSteps(
  state: UplinkState,
  { uplink, alias, scopePrefix }: RefusedGapRule,
): { readonly steps: readonly Step[]; onAccepted(): void } {
  const open = Object.entries(state.forgone)
  const prefix = gapPrefix(alias, uplink)
  const steps = open.map(([key, { id, name, dataset = '', from, to, count, since = from }]) => {
    const stream = name === undefined ? undefined : { name, dataset }
    const gap = { from, to, count, reason: 'refused', atMost: true }
    return gapStep(
      // What is lost of the same later, at the same time even, is another gap; what grows is the same one.
      `${prefix}:refused-${hash('sha1', key).slice(0, 12)}-${since}`,
      { id, stream, alias, scopePrefix },
      gap,
    )
  })
  return {
    steps,
    onAccepted() {
      // What grew while it was told is told again, by the same gap.
      for (const [key, one] of open) if (state.forgone[key] === one) delete state.forgone[key]
    },
  }
}
