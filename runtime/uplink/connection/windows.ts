/**
 * Time windows of an uplink: each opens at a minute matched by a cron expression and lasts a number of
 * minutes. Without windows the uplink is always open. Windows are recomputed when the wall clock jumps.
 */
import { openSchedule } from '#base/time/schedule.ts'
import type { UplinkWindow } from '#ngsi-ld/subscription/uplink-options.ts'

export interface Windows {
  /** Whether the uplink may send at a time (ms). */
  isOpen(now: number): boolean
}

const minuteMs = 60_000

export async function openWindows(windows: readonly UplinkWindow[]): Promise<Windows> {
  if (windows.length === 0) return { isOpen: () => true }
  const all = await Promise.all(windows.map(createWindow))
  return Object.freeze({ isOpen: (now: number) => all.map((isOpen) => isOpen(now)).includes(true) })
}

async function createWindow({ cron, minutes }: UplinkWindow): Promise<Windows['isOpen']> {
  const { isTime } = await openSchedule(cron)
  /** The last minute checked, and the end of the latest window. */
  let lastMinute = Number.NaN
  let end = Number.NEGATIVE_INFINITY
  return (now) => {
    const minute = Math.floor(now / minuteMs)
    const isContinuous = minute >= lastMinute && minute - lastMinute <= minutes
    if (!isContinuous) end = Number.NEGATIVE_INFINITY
    for (let each = isContinuous ? lastMinute + 1 : minute - minutes + 1; each <= minute; each++)
      if (isTime(each * minuteMs)) end = each + minutes
    lastMinute = minute
    return minute < end
  }
}
