/**
 * The status of an uplink for operators: activity, backlog, problems. Read-only.
 */
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { CentralBroker } from '#uplink/centre/central-broker.ts'
import type { ConnectionTrouble, Connectivity } from '#uplink/centre/connectivity.ts'
import type { Lane } from '#uplink/connection/rate-limit.ts'
import type { BacklogMeasure, BacklogSize } from '#uplink/progress/backlog-size.ts'
import type { UplinkState } from '#uplink/progress/uplink-state.ts'
import type { ClosedReason, Gate } from './gate.ts'

export interface UplinkStatus {
  readonly state: 'live' | 'catching-up' | 'offline' | 'paused' | 'waiting'
  /** Why nothing is sent although the centre may be reachable. */
  readonly closedBy: ClosedReason | undefined
  /** Like `shut`, for history alone. */
  readonly historyClosedBy: ClosedReason | undefined
  /** Since when (ms) and why nothing can be sent. */
  readonly trouble: ConnectionTrouble | undefined
  /** Like `trouble`, for history alone. */
  readonly historyTrouble: ConnectionTrouble | undefined
  /** Number of log rows that are not sent yet. */
  readonly behind: number
  /** Commit time (ms) of the oldest unsent change. */
  readonly oldest: number | undefined
  readonly counts: UplinkState['counts']
  readonly last: UplinkState['last']
  /** The backlog, and how long there is room for more. */
  readonly backlog: BacklogSize
  readonly reconcile: UplinkState['reconcile']
  readonly collisions: UplinkState['collisions']
  /** Bytes since the uplink started, and on this UTC day. */
  readonly sentBytes: number
  readonly day: UplinkState['day']
}

export interface StatusPorts {
  readonly following: Pick<ChangeFeed, 'position'>
  readonly centres: Readonly<Record<Lane, Pick<CentralBroker, 'sentBytes'>>>
  readonly gate: Pick<Gate, 'closedBy'>
  readonly connectivity: Pick<Connectivity, 'trouble'>
  readonly measure: Pick<BacklogMeasure, 'size'>
  readonly state: UplinkState
}

export function statusOf({
  following,
  centres,
  gate,
  connectivity,
  measure,
  state,
}: StatusPorts): UplinkStatus {
  const trouble = connectivity.trouble('live')
  const behind = following.position().n - state.position.n
  const isCatchingUp = state.refresh !== undefined || state.spans.length > 0 || state.telling !== undefined
  const oldest = state.spans[0]?.from ?? (behind > 0 ? state.position.at : undefined)
  const closedBy = gate.closedBy('live')
  const going = trouble ? 'offline' : isCatchingUp ? 'catching-up' : 'live'
  return {
    state: closedBy === undefined ? going : closedBy === 'paused' ? 'paused' : 'waiting',
    closedBy,
    historyClosedBy: closedBy === undefined ? gate.closedBy('backfill') : undefined,
    trouble,
    historyTrouble: trouble === undefined ? connectivity.trouble('backfill') : undefined,
    behind,
    oldest,
    counts: { ...state.counts },
    last: state.last,
    backlog: measure.size(oldest),
    reconcile: state.reconcile,
    collisions: state.collisions,
    sentBytes: centres.live.sentBytes() + centres.backfill.sentBytes(),
    day: state.day,
  }
}
