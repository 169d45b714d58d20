/**
 * Keeps the backlog of an uplink within its budget while nothing can be sent. So the budget holds during an
 * outage, and operators see its cost. It removes nothing, but decides what will not be sent.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { Connectivity } from '#uplink/centre/connectivity.ts'
import type { BacklogMeasure } from '#uplink/progress/backlog-size.ts'
import type { UplinkState } from '#uplink/progress/uplink-state.ts'
import type { Gate } from './gate.ts'

export interface BudgetLanePorts {
  readonly id: string
  readonly state: UplinkState
  readonly following: Pick<ChangeFeed, 'isHeld' | 'position'>
  readonly connectivity: Pick<Connectivity, 'isClosed' | 'sleep' | 'trouble'>
  readonly gate: Pick<Gate, 'closedBy'>
  readonly measure: BacklogMeasure
  readonly log: Log
  /** Whether the first span is being sent. */
  readonly isFilling: () => boolean
  /** Called when the state changed. */
  readonly onBound: () => Promise<void>
}

/** Resolves when the connection is closed. */
export async function budgetLane(ports: BudgetLanePorts): Promise<void> {
  const { id, state, following, connectivity, gate, measure, log } = ports
  while (!connectivity.isClosed()) {
    await connectivity.sleep(limits.uplinkBudgetMs.value)
    const trouble = connectivity.trouble('live') ?? connectivity.trouble('backfill')
    const isAway = (trouble ?? gate.closedBy('backfill')) !== undefined && !following.isHeld()
    if (!isAway || connectivity.isClosed()) continue
    const { at, n } = following.position()
    const behindTo = n > state.position.n ? at + 1 : undefined
    if (!measure.enforceBudget({ isFilling: ports.isFilling(), behindTo })) continue
    const { observations, bytes, dropped } = measure.size(state.spans[0]?.from ?? state.position.at)
    log.warn('uplink.over-budget', { uplink: id, observations, bytes, letGo: dropped })
    await ports.onBound()
  }
}
