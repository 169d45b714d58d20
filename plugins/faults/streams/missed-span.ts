/**
 * Times in which no value could arrive because the gateway was down, or the broker was not followed. Pure.
 * They are no silence of a sensor, and no pause of a device.
 */
import type { ArrivedSample, WatchRecord } from './fault-stream.ts'

/** Clock times, ms. */
export interface MissedSpan {
  readonly from: number
  readonly to: number
}

/** Adds the part of a downtime that follows the newest sample of a stream. */
export function addDowntime(record: WatchRecord, { from, to }: MissedSpan): void {
  const { last } = record
  if (last === undefined) return
  if (record.downMs === 0) record.lagMs = last.committedAt - last.time
  record.downMs += Math.max(0, to - Math.max(from, last.committedAt))
}

/**
 * The part of a missed time that still lies ahead of a sample in the time of its stream, ms. Messages that
 * were in flight when the gateway stopped arrive late, before those that follow the gap.
 */
export const stillMissed = (
  { lagMs = 0, downMs }: WatchRecord,
  { time, committedAt }: ArrivedSample,
): number => Math.min(downMs, Math.max(0, committedAt - time - lagMs))
