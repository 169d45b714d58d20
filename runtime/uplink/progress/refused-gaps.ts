/**
 * Gaps for changes that the centre refused and that are no longer queued. A HistoryGap reports which
 * attribute of which entity is missing, from when to when, and at most how many values. Unreported gaps are
 * part of the state and bounded; beyond the limit, one gap without an entity counts the rest. Refused gaps
 * cause no further gaps.
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

/**
 * Adds gaps for dropped refusals to the state. Returns a function that undoes this, except for gaps reported
 * in between.
 */
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
        from: Math.min(known.from, from),
        to: Math.max(known.to, to),
        count: known.count + count,
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

/** Steps that report the pending gaps; the caller calls `onAccepted` once the centre has accepted them. */
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
      // A later loss of the same attribute, even at the same time, is another gap; a growing one keeps its
      // id.
      `${prefix}:refused-${hash('sha1', key).slice(0, 12)}-${since}`,
      { id, stream, alias, scopePrefix },
      gap,
    )
  })
  return {
    steps,
    onAccepted() {
      // A gap that grew while it was being sent stays pending and is sent again under the same id.
      for (const [key, one] of open) if (state.forgone[key] === one) delete state.forgone[key]
    },
  }
}
